/** Processes between two jobs: who gets one, and when it ends. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type WarmWorker, WarmWorkers } from "../../../src/batch/warm/warm-workers.ts";
import { WARM_WORKER_MS } from "../../../src/contracts/limits/jobs.ts";
import { ComputeAccount } from "../../../src/engine/compute-account.ts";
import { ExitWatch } from "../../../src/engine/exit-watch.ts";
import { Wear } from "../../../src/engine/lifetime.ts";
import type { WorkerConnection } from "../../../src/protocol/worker-connection.ts";
import { fakeProcess } from "../../harness/fake-worker.ts";
import { LONG_LIFE } from "../../harness/lifetime.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("warm workers", () => {
  const compute = { cpuMillis: 500, memoryBytes: 0, gpus: 0 };
  let account: ComputeAccount;
  let warm: WarmWorkers;
  let forgotten: string[];
  beforeEach(() => {
    account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: 0, gpus: ["0"] });
    forgotten = [];
    warm = new WarmWorkers({ account, forgetWorker: async (id) => void forgotten.push(id) });
  });
  afterEach(() => vi.useRealTimers());

  const of = (api_id: string, needs = compute) =>
    warm.of({ api_name: `api-${api_id}`, api_id, compute: needs });
  const worker = (id: string): WarmWorker => {
    const process = fakeProcess("/nowhere");
    const named = { ...process, identity: { ...process.identity, worker_id: id } };
    const exit = new ExitWatch(named);
    return { process: named, exit, connection: {} as WorkerConnection, wear: new Wear(LONG_LIFE) };
  };
  const idOf = (taken: WarmWorker | undefined) => taken?.process.identity.worker_id;

  it("go to jobs of their version only, the last one first, and once", () => {
    for (const id of ["one", "two"]) expect(of("a").keep(worker(id))).toBe(true);
    expect(of("b").take()).toBeUndefined();
    expect([of("a").take(), of("a").take(), of("a").take()].map(idOf)).toEqual(["two", "one", undefined]);
  });

  it("end when others reserve their compute, the oldest first, and not before", async () => {
    for (const id of ["one", "two"]) of("a").keep(worker(id));
    await turn();
    expect(warm.count).toBe(2);
    account.occupy({ ...compute, cpuMillis: 400 });
    await turn();
    await turn();
    expect(forgotten).toEqual(["one"]);
    expect(idOf(of("a").take())).toBe("two");
  });

  it("are not more than what is free when they come", async () => {
    account.occupy({ ...compute, cpuMillis: 900 });
    of("a").keep(worker("one"));
    await turn();
    await turn();
    expect(forgotten).toEqual(["one"]);
  });

  it("can be taken in the turn in which their compute is reserved", async () => {
    for (const id of ["one", "two"]) of("a").keep(worker(id));
    account.occupy(compute);
    const taken = of("a").take();
    await turn();
    expect([idOf(taken), warm.count, forgotten.length]).toEqual(["two", 1, 0]);
  });

  it("end after a time", async () => {
    vi.useFakeTimers();
    of("a").keep(worker("one"));
    await vi.advanceTimersByTimeAsync(WARM_WORKER_MS - 1);
    expect(warm.count).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect([warm.count, forgotten]).toEqual([0, ["one"]]);
  });

  it("that die are forgotten", async () => {
    const dead = worker("one");
    of("a").keep(dead);
    dead.process.kill();
    await turn();
    expect([of("a").take(), forgotten]).toEqual([undefined, ["one"]]);
  });

  it("end with their API, and none is kept once all are stopped", async () => {
    of("a").keep(worker("one"));
    of("b").keep(worker("two"));
    await warm.endOf("api-a");
    expect(forgotten).toEqual(["one"]);
    await warm.stop();
    expect(forgotten).toEqual(["one", "two"]);
    expect(of("a").keep(worker("three"))).toBe(false);
  });

  it("have no GPUs, because others would get them while their memory is still in use", () => {
    expect(of("a", { ...compute, gpus: 1 }).keep(worker("one"))).toBe(false);
  });
});
