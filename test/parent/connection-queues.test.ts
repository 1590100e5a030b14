/** Which gateway gets a connection, and when the parent accepts no more. */
import { beforeEach, describe, expect, it } from "vitest";
import { ConnectionQueues } from "../../src/parent/connection-queues.ts";

const MOST = 3;
const [MAIN, INSIDE] = [0, 1];
const BOTH = ["a", "b"];

interface Connection {
  name: string;
  listener: number;
  owner: string;
}

describe("connections that no gateway has received yet", () => {
  let queues: ConnectionQueues<string, Connection>;
  let made = 0;
  beforeEach(() => {
    queues = new ConnectionQueues(MOST);
    made = 0;
  });

  function add(count: number, ready: readonly string[], listener = MAIN, owner = "one"): void {
    for (let one = 0; one < count; one++) queues.add({ name: `${made++}`, listener, owner }, ready);
  }

  /** The gateway receives all, one after the other. */
  function receiveAll(gateway: string): string[] {
    const names: string[] = [];
    for (let next = queues.next(gateway); next !== undefined; next = queues.next(gateway)) {
      expect(queues.received(gateway, next)).toBe(true);
      names.push(next.name);
    }
    return names;
  }

  it("go to the gateways in turn", () => {
    add(6, BOTH);
    expect([receiveAll("a"), receiveAll("b")]).toEqual([
      ["0", "2", "4"],
      ["1", "3", "5"],
    ]);
  });

  it("go to the one that has a place", () => {
    add(2 * MOST, BOTH);
    expect(receiveAll("b")).toHaveLength(MOST);
    add(MOST, BOTH);
    expect(receiveAll("b")).toEqual(["6", "7", "8"]);
    expect(receiveAll("a")).toHaveLength(MOST);
  });

  it("are accepted only while a gateway has a place for another one", () => {
    expect(queues.mayAccept(MAIN, [])).toBe(false);
    for (let one = 0; one < 2 * MOST; one++) {
      expect(queues.mayAccept(MAIN, BOTH)).toBe(true);
      add(1, BOTH);
    }
    expect(queues.mayAccept(MAIN, BOTH)).toBe(false);
    // Those of other listeners have places of their own.
    expect(queues.mayAccept(INSIDE, BOTH)).toBe(true);
    // It may have the connection that it is being given.
    const given = queues.next("a")!;
    expect(queues.mayAccept(MAIN, BOTH)).toBe(false);
    queues.received("a", given);
    expect(queues.mayAccept(MAIN, BOTH)).toBe(true);
  });

  it("are given one at a time", () => {
    add(2, ["a"]);
    const first = queues.next("a")!;
    expect(queues.next("a")).toBe(undefined);
    queues.received("a", first);
    expect(queues.next("a")?.name).toBe("1");
  });

  it("of one listener do not hold back those of another", () => {
    add(MOST, ["a"]);
    add(1, ["a"], INSIDE);
    expect(receiveAll("a")).toEqual(["0", "3", "1", "2"]);
  });

  it("of one client do not hold back those of another", () => {
    add(2, ["a"], MAIN, "many");
    add(1, ["a"], MAIN, "few");
    add(MOST, ["a"], INSIDE);
    expect(receiveAll("a")).toEqual(["0", "3", "2", "4", "1", "5"]);
  });

  it("go to another gateway if theirs does not respond, except the one that it is being given", () => {
    add(4, BOTH);
    queues.next("a");
    queues.dealAgain(["b"]);
    expect(receiveAll("b").sort()).toEqual(["1", "2", "3"]);
    queues.dealAgain(BOTH);
    expect([receiveAll("a"), receiveAll("b")]).toEqual([[], []]);
  });

  it("go to another gateway if theirs ends, also the one that it had not received", () => {
    add(3, BOTH);
    const given = queues.next("a")!;
    queues.forget("a");
    expect(queues.received("a", given)).toBe(false);
    queues.dealAgain(["b"]);
    expect(receiveAll("b").sort()).toEqual(["0", "1", "2"]);
  });

  it("wait while no gateway has a place, and none is accepted before they have one", () => {
    add(2 * MOST, BOTH);
    queues.forget("a");
    queues.dealAgain(["b"]);
    expect(queues.mayAccept(MAIN, ["b"])).toBe(false);
    expect(receiveAll("b")).toEqual(["1", "3", "5"]);
    expect(queues.mayAccept(MAIN, ["b"])).toBe(false);
    expect(queues.mayAccept(INSIDE, ["b"])).toBe(true);
    queues.dealAgain(["b"]);
    expect(receiveAll("b")).toEqual(["0", "2", "4"]);
    expect(queues.mayAccept(MAIN, ["b"])).toBe(true);
  });

  it("wait for a first gateway, and none is lost or received twice", () => {
    add(2, []);
    expect(queues.mayAccept(MAIN, [])).toBe(false);
    queues.dealAgain(["a"]);
    const given = queues.next("a")!;
    expect(queues.clear().map(({ name }) => name)).toEqual(["1"]);
    expect(queues.received("a", given)).toBe(true);
    expect(queues.received("a", given)).toBe(false);
    expect([queues.next("a"), queues.clear()]).toEqual([undefined, []]);
  });
});
