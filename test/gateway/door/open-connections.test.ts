/** Whose connections are closed when a listener holds as many as it may. */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addressOwner } from "../../../src/base/fair/address-owner.ts";
import { processLog } from "../../../src/base/log.ts";
import { CONNECTION_NEW_MS } from "../../../src/contracts/limits/requests.ts";
import { ownerOf, setOwner } from "../../../src/gateway/connections/owners.ts";
import { Shares } from "../../../src/gateway/connections/shares.ts";
import type { ConnectionUse } from "../../../src/gateway/door/asked-at-once.ts";
import { OpenConnections } from "../../../src/gateway/door/open-connections.ts";

class Connection extends EventEmitter {
  readonly remoteAddress: string;
  use: ConnectionUse;
  destroyed = false;

  constructor(remoteAddress: string, use: ConnectionUse) {
    super();
    this.remoteAddress = remoteAddress;
    this.use = use;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

const MOST = 32;
const asSocket = (connection: Connection) => connection as unknown as Socket;

describe("connections beyond the bound", () => {
  let open: OpenConnections;
  let said: string[];

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
    open = new OpenConnections(MOST, (socket) => (socket as unknown as Connection).use);
    said = [];
    vi.spyOn(processLog(), "warn").mockImplementation((_, message) => {
      said.push(message);
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  function add(count: number, address: string, use: ConnectionUse): Connection[] {
    return Array.from({ length: count }, () => {
      const connection = new Connection(address, use);
      open.add(asSocket(connection));
      return connection;
    });
  }

  const closed = (connections: Connection[]) =>
    connections.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));

  it("close those of the address that has most, and none of another", () => {
    const others = add(2, "192.0.2.1", "idle");
    const flood = add(MOST, "192.0.2.2", "slow");
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    const late = add(2, "192.0.2.3", "idle");
    expect([closed(others), closed(flood), closed(late)]).toEqual([[], [0, 1, 2, 3], []]);
  });

  it("count a connection to the key of its last authorised request", () => {
    const ours = add(2, "192.0.2.1", "new");
    const strangers = add(MOST - 2, "192.0.2.1", "slow");
    ours.push(...add(2, "192.0.2.1", "new"));
    for (const connection of ours) {
      setOwner(asSocket(connection), "key");
      connection.use = "idle";
    }
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    add(20, "192.0.2.1", "slow");
    expect([closed(ours), closed(strangers).length]).toEqual([[], 22]);
    expect(ownerOf(asSocket(ours[0]!))).toBe("key");
  });

  it("close idle ones first, then those that wait for their client, then used ones, and predictions last", () => {
    const order: ConnectionUse[] = ["busy", "used", "slow", "idle"];
    const ours = order.flatMap((use) => add(MOST / 4, "192.0.2.1", use));
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    const late = add(8, "192.0.2.2", "idle");
    expect([closed(ours.slice(24)).length, closed(ours.slice(0, 24))]).toEqual([8, []]);
    late.push(...add(8, "192.0.2.2", "idle"));
    expect([closed(ours.slice(16)).length, closed(ours.slice(0, 16)), closed(late)]).toEqual([16, [], []]);
    for (const connection of late) connection.destroy();
    add(16, "192.0.2.1", "busy");
    add(8, "192.0.2.3", "busy");
    expect([closed(ours.slice(0, 8)), closed(ours.slice(8, 16)).length]).toEqual([[], 8]);
  });

  it("close none that is new and without a request: it may be on its way", () => {
    const flood = add(MOST - 1, "192.0.2.1", "slow");
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    const [ours] = add(1, "192.0.2.1", "new");
    add(MOST - 1, "192.0.2.1", "slow");
    expect([ours!.destroyed, closed(flood).length]).toEqual([false, MOST - 1]);
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    add(1, "192.0.2.1", "slow");
    expect(ours!.destroyed).toBe(true);
  });

  it("are closed if nobody has many, and nothing is idle", () => {
    const open = Array.from({ length: MOST }, (_, n) => add(1, `192.0.2.${n}`, "busy")[0]!);
    expect(closed(add(1, "192.0.2.1", "idle"))).toEqual([0]);
    open[3]!.use = "idle";
    vi.advanceTimersByTime(CONNECTION_NEW_MS);
    expect(closed(add(1, "192.0.2.1", "idle"))).toEqual([]);
    expect(closed(open)).toEqual([3]);
  });

  it("are written about once a minute", () => {
    add(MOST * 2, "192.0.2.1", "busy");
    expect(said).toEqual([
      `all ${MOST} connections of a listener are in use, ${MOST} of them by 192.0.2.1: new ones close ` +
        "connections of whoever has most (said at most once a minute)",
    ]);
    vi.advanceTimersByTime(60_000);
    add(2, "192.0.2.1", "busy");
    expect(said).toHaveLength(2);
  });
});

it.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  [undefined, ""],
])("the owner of a connection from %s is %s", (address, owner) => {
  expect(addressOwner(address)).toBe(owner);
});

it("shares name the owner with most, if that is more than the share", () => {
  const shares = new Shares(10);
  shares.add("a", 10);
  expect(shares.largest).toBeUndefined();
  shares.add("a", 1);
  shares.add("b", 12);
  expect(shares.largest).toBe("b");
  shares.add("b", -2);
  expect([shares.largest, shares.of("b")]).toEqual(["a", 10]);
  shares.add("a", -11);
  expect([shares.largest, shares.of("a")]).toEqual([undefined, 0]);
});
