/** What one turn of the event loop answers for callers without a key, and what becomes of the rest. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { beforeEach, describe, expect, it } from "vitest";
import { CONNECTIONS_MAX, STRANGERS_OF_A_TURN_MAX } from "../../../src/contracts/limits/requests.ts";
import { StrangersTurn } from "../../../src/gateway/door/strangers-turn.ts";

describe("a turn of the event loop", () => {
  let turns: (() => void)[];
  let turn: StrangersTurn;
  let answered: string[];

  beforeEach(() => {
    turns = [];
    answered = [];
    turn = new StrangersTurn((begin) => turns.push(begin));
  });

  const nextTurn = () => turns.shift()!();
  const spend = () => {
    for (let count = 0; count < STRANGERS_OF_A_TURN_MAX; count++) turn.count();
  };
  function connect(remoteAddress = "10.0.0.1") {
    const parser = { onIncoming: () => 0 };
    const socket = { remoteAddress, parser, destroyed: false, destroy: () => (socket.destroyed = true) };
    return socket;
  }
  /** `isAhead`: Node has given the connection to an earlier response. */
  function ask(socket: ReturnType<typeof connect>, name = socket.remoteAddress, isAhead = false): void {
    const request = { socket } as unknown as IncomingMessage;
    const response = { socket: isAhead ? null : socket } as unknown as ServerResponse;
    turn.postpone(request, response, () => answered.push(name));
  }

  it("is spent after a number of answers, and the next one begins anew", () => {
    expect(turn.isSpent).toBe(false);
    spend();
    expect(turn.isSpent).toBe(true);
    // However many there are, they wake the event loop once.
    expect(turns).toHaveLength(1);
    nextTurn();
    expect(turn.isSpent).toBe(false);
    expect(turns).toHaveLength(0);
  });

  it("answers as many that waited as it may, and no request is lost", () => {
    spend();
    for (let count = 0; count < 2.5 * STRANGERS_OF_A_TURN_MAX; count++) ask(connect());
    expect(answered).toHaveLength(0);
    for (const share of [1, 2, 2.5]) {
      nextTurn();
      expect(answered).toHaveLength(share * STRANGERS_OF_A_TURN_MAX);
      // Whoever comes now waits too, unless nobody waited.
      expect(turn.isSpent).toBe(share !== 2.5);
    }
  });

  it("lets each address have its turn, however many requests another one sent", () => {
    spend();
    for (let count = 0; count < CONNECTIONS_MAX; count++) ask(connect("10.0.0.1"));
    ask(connect("10.0.0.2"));
    nextTurn();
    expect(answered.slice(0, 2)).toEqual(["10.0.0.1", "10.0.0.2"]);
  });

  it("closes a connection whose request came ahead of another's response, and reads no more of it", () => {
    spend();
    const [greedy, patient] = [connect(), connect()];
    ask(greedy, "first");
    ask(greedy, "second", true);
    ask(patient, "patient");
    const PARSE_NO_MORE = 2;
    expect(greedy.parser.onIncoming()).toBe(PARSE_NO_MORE);
    expect(patient.parser.onIncoming()).toBe(0);
    // Closing is work too, so it waits for its turn.
    expect(greedy.destroyed).toBe(false);
    nextTurn();
    expect(greedy.destroyed).toBe(true);
    expect(answered).toEqual(["patient"]);
    expect(patient.destroyed).toBe(false);
  });

  it("continues after a request that throws", () => {
    spend();
    const broken = connect();
    turn.postpone({ socket: broken } as never, { socket: broken } as never, () => {
      throw new Error("expected");
    });
    ask(connect());
    nextTurn();
    expect(broken.destroyed).toBe(true);
    expect(answered).toHaveLength(1);
  });
});
