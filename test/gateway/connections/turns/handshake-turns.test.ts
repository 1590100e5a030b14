/** Which TLS handshakes each turn of the event loop works on. */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import {
  HANDSHAKES_OF_A_TURN_MAX,
  HANDSHAKING_OF_A_TURN_MS,
} from "../../../../src/contracts/limits/requests.ts";
import type { AcceptingTurns } from "../../../../src/gateway/connections/turns/accepting-turns.ts";
import { HandshakeTurns } from "../../../../src/gateway/connections/turns/handshake-turns.ts";

describe("a turn of the event loop", () => {
  let next: (() => void)[];
  let nowMs: number;
  let turns: HandshakeTurns;
  /** The names of handshakes, in the order in which they began. */
  let begun: string[];
  let msOfOne: number;
  let areOthersDue: boolean;

  beforeEach(() => {
    [next, nowMs, begun, msOfOne] = [[], 0, [], 0];
    areOthersDue = false;
    const clock = { nextTurn: (begin: () => void) => next.push(begin), nowMs: () => nowMs };
    turns = new HandshakeTurns(clock, { areDue: () => areOthersDue } as AcceptingTurns);
  });

  class FakeSocket extends EventEmitter {
    destroyed = false;
    readonly remoteAddress: string;
    constructor(remoteAddress: string) {
      super();
      this.remoteAddress = remoteAddress;
    }
    destroy(): void {
      this.destroyed = true;
    }
  }
  function push(address: string, name: string, begin = () => {}): FakeSocket {
    const socket = new FakeSocket(address);
    const give = () => {
      begun.push(name);
      nowMs += msOfOne;
      begin();
    };
    turns.push(address, socket as unknown as Socket, give);
    return socket;
  }
  const pushMany = (count: number, address = "10.0.0.1") => {
    for (let each = 0; each < count; each++) push(address, `${address} ${each}`);
  };
  const turn = () => next.shift()!();

  it("begins as many as its bound, and the next ones begin the rest", () => {
    pushMany(HANDSHAKES_OF_A_TURN_MAX + 3);
    expect(begun).toHaveLength(0);
    turn();
    expect(begun).toHaveLength(HANDSHAKES_OF_A_TURN_MAX);
    turn();
    expect(begun).toHaveLength(HANDSHAKES_OF_A_TURN_MAX + 3);
    expect(next).toHaveLength(0);
  });

  it("begins fewer if they take long, but always one", () => {
    msOfOne = HANDSHAKING_OF_A_TURN_MS / 2;
    pushMany(10);
    turn();
    expect(begun).toHaveLength(2);
    msOfOne = 2 * HANDSHAKING_OF_A_TURN_MS;
    turn();
    expect(begun).toHaveLength(3);
  });

  it("begins none while connections are accepted, and later ones do", () => {
    push("10.0.0.1", "patient");
    areOthersDue = true;
    turn();
    turn();
    expect(begun).toHaveLength(0);
    areOthersDue = false;
    turn();
    expect(begun).toEqual(["patient"]);
  });

  it("begins one of each address before the second of any", () => {
    pushMany(100);
    push("10.0.0.2", "patient");
    turn();
    expect(begun.indexOf("patient")).toBe(1);
  });

  it("passes over connections that have closed", () => {
    msOfOne = HANDSHAKING_OF_A_TURN_MS;
    push("10.0.0.1", "gone").destroy();
    push("10.0.0.1", "here");
    turn();
    expect(begun).toEqual(["here"]);
  });

  it("closes a connection whose handshake throws, and goes on", () => {
    const broken = push("10.0.0.1", "broken", () => {
      throw new Error("broken");
    });
    push("10.0.0.1", "here");
    turn();
    expect(broken.destroyed).toBe(true);
    expect(begun).toEqual(["broken", "here"]);
  });
});
