/** Which connections each turn of the event loop reads, after one that read for too long. */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import {
  CONNECTION_NEW_MS,
  CONNECTIONS_READ_AGAIN,
  READING_OF_A_TURN_MS,
} from "../../../../src/contracts/limits/requests.ts";
import type { CountedRequest } from "../../../../src/gateway/connections/dropped-body.ts";
import { followOwner, setOwner } from "../../../../src/gateway/connections/owners.ts";
import type { AcceptingTurns } from "../../../../src/gateway/connections/turns/accepting-turns.ts";
import { ReadingTurns } from "../../../../src/gateway/connections/turns/reading-turns.ts";

/** Keys, addresses and new connections alternate. */
const SHARE = Math.floor(CONNECTIONS_READ_AGAIN / 3);

class FakeHandle {
  reading = true;
  isRead = true;

  readStop(): void {
    this.isRead = false;
  }

  readStart(): void {
    this.isRead = true;
  }
}

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  bytesRead = 0;
  destroyed = false;
  readableEnded = false;
  readonly _handle: FakeHandle | undefined = new FakeHandle();

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  get isRead(): boolean {
    return this._handle?.isRead ?? true;
  }

  /** As Node does for its parser, between two parts of a body. */
  pauseAndResume(): void {
    const handle = this._handle!;
    handle.reading = false;
    handle.readStop();
    handle.reading = true;
    handle.readStart();
  }
}

describe("a turn of the event loop", () => {
  let begin: (() => void)[];
  let nowMs: number;
  let turns: ReadingTurns;
  let sockets: FakeSocket[];
  let areOthersDue: boolean;

  beforeEach(() => {
    [begin, nowMs, sockets] = [[], 1_000, []];
    areOthersDue = false;
    turns = new ReadingTurns(
      (next) => begin.push(next),
      () => nowMs,
      { areDue: () => areOthersDue } as AcceptingTurns,
    );
  });

  function connect(address = "10.0.0.1", key?: string, bytesRead = 0): FakeSocket {
    const socket = new FakeSocket(address);
    socket.bytesRead = bytesRead;
    followOwner(socket as unknown as Socket, () => {});
    if (key !== undefined) setOwner(socket as unknown as Socket, key);
    turns.add(socket as unknown as Socket);
    sockets.push(socket);
    return socket;
  }
  /** Beyond that, a connection is not new any more. */
  const age = () => (nowMs += CONNECTION_NEW_MS);
  const connectMany = (count: number, address?: string) =>
    Array.from({ length: count }, () => connect(address));
  /** Long enough for two readings of the clock. */
  function work(ms: number): void {
    for (let part = 0; part < 32; part++) {
      turns.count();
      if (part === 16) nowMs += ms;
    }
  }
  const spend = () => work(READING_OF_A_TURN_MS);
  const nextTurn = () => begin.shift()!();
  const read = () => sockets.filter(({ isRead }) => isRead);
  /** All of these have sent something, and it has been read. */
  const receive = (these: FakeSocket[]) => {
    for (const socket of these) socket.bytesRead += 100;
  };

  it("reads as Node does where a handle cannot stop reading", () => {
    const sockets = [{}, undefined].map((handle) => Object.assign(connect(), { _handle: handle }));
    spend();
    expect(nextTurn).not.toThrow();
    receive(sockets);
    spend();
    expect(nextTurn).not.toThrow();
    expect(read()).toEqual(sockets);
  });

  it("of ordinary load reads everybody, and does not wake the event loop for each request", () => {
    connectMany(100);
    for (let request = 0; request < 10; request++) work(READING_OF_A_TURN_MS / 20);
    expect(read()).toHaveLength(100);
    expect(begin).toHaveLength(1);
    nextTurn();
    // Time in which nothing was counted is not the turn's.
    nowMs += 10 * READING_OF_A_TURN_MS;
    work(1);
    expect(read()).toHaveLength(100);
  });

  it("that takes too long stops reading everybody, and later turns read everybody again, a few at a time", () => {
    connectMany(100);
    spend();
    expect(read()).toHaveLength(0);
    const seen: number[] = [];
    while (begin.length > 0) {
      nextTurn();
      receive(read());
      seen.push(read().length);
    }
    const first = CONNECTIONS_READ_AGAIN;
    // The last one finds nothing more to do.
    expect(seen).toEqual([first, 3 * first, 7 * first, 100, 100]);
  });

  it("that takes too long stops them until their turn, also those that Node resumes itself", () => {
    connectMany(100);
    spend();
    for (const socket of sockets) socket.pauseAndResume();
    expect(read()).toHaveLength(0);
    nextTurn();
    expect(read()).toHaveLength(CONNECTIONS_READ_AGAIN);
    for (const socket of read()) socket.pauseAndResume();
    expect(read()).toHaveLength(CONNECTIONS_READ_AGAIN);
  });

  it("reads none of those that wait while others are accepted, and none of these", () => {
    connectMany(100);
    spend();
    areOthersDue = true;
    for (let turn = 0; turn < 5; turn++) {
      expect(connect("10.0.0.2").isRead).toBe(false);
      nextTurn();
      expect(read()).toHaveLength(0);
    }
    areOthersDue = false;
    nextTurn();
    expect(read().some(({ remoteAddress }) => remoteAddress === "10.0.0.2")).toBe(true);
  });

  it("reads new connections at once while none waits", () => {
    areOthersDue = true;
    expect(connect().isRead).toBe(true);
    work(1);
    nextTurn();
    expect(connect().isRead).toBe(true);
    expect(read()).toHaveLength(2);
  });

  it("reads first whose connections have cost least", () => {
    const busy = connect("10.0.0.1");
    age();
    spend();
    nextTurn();
    busy.bytesRead += 50_000;
    spend();
    // As if it had been read before: it is not new.
    const other = connect("10.0.0.2", undefined, 1);
    nextTurn();
    expect(read()).toEqual([other]);
  });

  it("reads a connection again only in its turn once that has given way to others, one of these a turn", () => {
    const [first, second, third] = [connect(), connect(), connect()];
    const yieldTurn = (socket: FakeSocket) =>
      (new turns.Request(socket as unknown as Socket) as CountedRequest).yieldTurn!();
    for (const each of [first, second]) yieldTurn(each);
    expect(read()).toEqual([third]);
    nextTurn();
    expect(read()).toEqual([first, third]);
    nextTurn();
    expect(read()).toEqual([first, second, third]);
  });

  it("reads as many again as it could after another one that took too long", () => {
    connectMany(1_000);
    spend();
    nextTurn();
    receive(read().slice(0, 3));
    spend();
    expect(read()).toHaveLength(0);
    nextTurn();
    expect(read()).toHaveLength(3);
  });

  it("reads few again after one that began with many and came to few of them", () => {
    connectMany(1_000);
    spend();
    for (let turn = 0; turn < 5; turn++) {
      nextTurn();
      receive(read());
    }
    const many = read();
    nextTurn();
    receive(
      read()
        .filter((socket) => !many.includes(socket))
        .slice(0, 2),
    );
    spend();
    nextTurn();
    expect(read()).toHaveLength(2);
  });

  it("gives every address its turn, however many connections another one has", () => {
    connectMany(1_000, "10.0.0.1");
    const other = connect("10.0.0.2");
    spend();
    nextTurn();
    expect(other.isRead).toBe(true);
  });

  it("gives keys their share of the places, however many addresses there are", () => {
    for (let address = 0; address < 1_000; address++) connect(`10.0.${address >> 8}.${address & 255}`);
    const holders = Array.from({ length: 10 }, (_, index) => connect("10.1.0.1", `key${index}`));
    age();
    spend();
    nextTurn();
    expect(holders.filter(({ isRead }) => isRead).length).toBeGreaterThanOrEqual(SHARE);
  });

  it("gives new connections their share of the places, because their first request may have a key", () => {
    connectMany(1_000);
    age();
    const fresh = connectMany(CONNECTIONS_READ_AGAIN);
    spend();
    nextTurn();
    expect(fresh.filter(({ isRead }) => isRead).length).toBeGreaterThanOrEqual(SHARE);
  });

  it("reads a connection within a few turns, even if the system always prefers others", () => {
    connectMany(1_000, "10.0.0.1");
    age();
    const other = connect("10.0.0.2");
    spend();
    let count = 0;
    for (; other.bytesRead === 0 && count < 10; count++) {
      nextTurn();
      // It is the last of those that are read, and the turn has time for two connections.
      const inOrder = read().sort((a, b) => Number(a === other) - Number(b === other));
      receive(inOrder.slice(0, 2));
      spend();
    }
    expect(count).toBe(2);
  });

  it("does not wait for a connection that was alone in its turn and sent nothing", () => {
    const [silent, busy] = [connect("10.0.0.1"), connect("10.0.0.2")];
    spend();
    nextTurn();
    // The turn has time for one connection.
    receive([busy]);
    spend();
    nextTurn();
    expect(read()).toEqual([silent]);
    // Others took the time of the turn.
    spend();
    nextTurn();
    expect(read()).toEqual([busy]);
  });

  it("reads no connection that Node has paused, that has ended or that is closed", () => {
    const [paused, ended, closed, open] = [connect(), connect(), connect(), connect()];
    spend();
    // Node waits until the client takes a response.
    paused._handle!.reading = false;
    ended.readableEnded = true;
    closed.destroyed = true;
    nextTurn();
    expect(read()).toEqual([open]);
  });

  it("also counts connections that end", () => {
    connectMany(100);
    for (const event of ["end", "error", "close"]) for (const socket of sockets) socket.emit(event);
    expect(begin).toHaveLength(1);
  });
});
