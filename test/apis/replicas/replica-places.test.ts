import { describe, expect, it } from "vitest";
import { ReplicaPlaces, type ReservedWorker } from "../../../src/apis/replicas/replica-places.ts";
import { ComputeAccount } from "../../../src/engine/compute-account.ts";
import { replicasOf } from "../../../src/engine/scheduler/claims.ts";
import type { Compute } from "../../../src/engine/scheduler/compute.ts";
import { withInstantRounds } from "../../harness/instant-rounds.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

withInstantRounds();
const cpus = (cpuMillis: number): Compute => ({ cpuMillis, memoryBytes: 0, gpus: 0 });

function world(cpuMillis: number) {
  const account = new ComputeAccount({ cpuMillis, memoryBytes: 0, gpus: [] });
  const granted: string[] = [];
  const placesOf = (name: string, need: number, perReplica = 1) => {
    const places = new ReplicaPlaces({
      account,
      by: replicasOf(name),
      onReserved: () => granted.push(name),
    });
    places.fit(cpus(need), perReplica);
    return places;
  };
  const free = () => account.available.cpuMillis;
  return { account, granted, placesOf, free };
}

const workers = (places: ReplicaPlaces, count: number): ReservedWorker[] =>
  Array.from({ length: count }, () => ({ reservation: places.take()! }));

describe("the reservations of an API's replicas", () => {
  it("are requested for whole replicas: two APIs never hold half a replica each", async () => {
    const { account, granted, placesOf, free } = world(1000);
    const taken = account.occupy(cpus(600))!;
    const [a, b] = [placesOf("a", 500, 2), placesOf("b", 500, 2)];
    a.waitFor(2);
    b.waitFor(2);
    await turn();
    expect([granted, free()]).toEqual([[], 400]);
    account.giveBack(taken);
    await turn();
    expect([granted, a.spare, b.spare, free()]).toEqual([["a"], 2, 0, 0]);
    a.release();
    await turn();
    expect([granted, a.spare, b.spare]).toEqual([["a", "b"], 0, 2]);
  });

  it("are requested only while they are missing, and never beyond the size of the machine", async () => {
    const { account, granted, placesOf } = world(1000);
    const taken = account.occupy(cpus(1000))!;
    const places = placesOf("a", 300);
    places.waitFor(100);
    places.waitFor(2);
    account.giveBack(taken);
    await turn();
    expect([granted, places.spare]).toEqual([["a", "a"], 2]);
    const others = world(1000);
    const many = others.placesOf("b", 300);
    many.waitFor(100);
    await turn();
    expect([many.spare, others.free()]).toEqual([3, 100]);
  });

  it("stay with the API after a worker is gone, even if others wait", async () => {
    const { account, placesOf, free } = world(1000);
    const places = placesOf("a", 700);
    const [worker] = workers(places, 1);
    const others: number[] = [];
    account.ask(cpus(500), () => others.push(1));
    places.keep(worker!.reservation!);
    await turn();
    expect([places.spare, others]).toEqual([1, []]);
    places.keepOnly(0);
    await turn();
    expect([places.spare, others, free()]).toEqual([0, [1], 500]);
  });

  it("have the size of the newest version; other sizes are released", () => {
    const { account, placesOf, free } = world(1000);
    const places = placesOf("a", 400);
    const [first, second] = workers(places, 2);
    places.keep(first!.reservation!);
    places.fit(cpus(500), 1);
    expect([places.spare, free()]).toEqual([0, 600]);
    places.keep(second!.reservation!);
    expect([places.spare, free()]).toEqual([1, 500]);
    const [third] = workers(places, 1);
    places.fit(cpus(2000), 1);
    places.keep(third!.reservation!);
    expect([places.spare, free()]).toEqual([0, 1000]);
    account.occupy(cpus(1000));
    expect(places.take()).toBeUndefined();
  });

  it("are handed over complete before the old replicas have stopped", async () => {
    const { account, placesOf, free } = world(1000);
    const places = placesOf("a", 200);
    const old = workers(places, 3);
    account.occupy(cpus(300));
    places.fit(cpus(500), 1);
    const others: number[] = [];
    account.ask(cpus(150), () => others.push(1));
    // 100 are free: two of 200 have to leave for one of 500.
    expect(places.leavingForOne(old)).toBe(2);
    const leaving = old.slice(0, 2);
    places.handOver(leaving);
    expect([leaving[0]!.reservation!.cpuMillis, leaving[1]!.reservation, free()]).toEqual([
      500,
      undefined,
      0,
    ]);
    places.keep(leaving[0]!.reservation!);
    await turn();
    expect([places.spare, others, places.leavingForOne(old.slice(2))]).toEqual([1, [], 0]);
  });

  it("shrink only after the old replicas have stopped", () => {
    const { placesOf, free } = world(1000);
    const places = placesOf("a", 500);
    const old = workers(places, 2);
    places.fit(cpus(200), 2);
    expect(places.leavingForOne(old)).toBe(2);
    places.handOver(old);
    expect(free()).toBe(0);
    for (const { reservation } of old) places.keep(reservation!);
    expect([places.spare, free()]).toEqual([2, 600]);
  });

  it("may be borrowed from replicas that stop afterwards, if they fit then", () => {
    const { account, placesOf, free } = world(1000);
    const places = placesOf("a", 300);
    const old = workers(places, 1);
    account.occupy(cpus(500));
    places.fit(cpus(600), 1);
    expect(places.canBorrow(old)).toBe(false);
    places.fit(cpus(250), 2);
    expect(places.canBorrow(old)).toBe(true);
    places.borrow(old);
    expect([places.spare, free()]).toEqual([2, -300]);
    places.fit(cpus(250), 1);
    places.keep(old[0]!.reservation!);
    places.keepOnly(0);
    expect(free()).toBe(500);
  });
});
