import { describe, expect, it, vi } from "vitest";
import { openLog } from "../../src/base/log.ts";
import { JobWorkers } from "../../src/batch/workers/job-workers.ts";
import { STALLED_AFTER_MS } from "../../src/contracts/limits/jobs.ts";
import { ComputeAccount } from "../../src/engine/compute-account.ts";
import type { Reservation } from "../../src/engine/reservations.ts";
import { replicasOf, stagesOf, workersOf } from "../../src/engine/scheduler/claims.ts";
import { withInstantRounds } from "../harness/instant-rounds.ts";
import { LONG_LIFE } from "../harness/lifetime.ts";
import { MANY_FILES } from "../harness/open-files.ts";

const GIB = 2 ** 30;
const turn = () => new Promise((resolve) => setImmediate(resolve));

withInstantRounds();

function jobWorkers(account: ComputeAccount): JobWorkers {
  return new JobWorkers({
    jobId: "job",
    epoch: 1,
    account,
    openFiles: MANY_FILES,
    lifetime: LONG_LIFE,
    by: workersOf("job", "a", 0),
    diskWait: { onWait() {}, signal: new AbortController().signal },
    compute: { cpuMillis: 200, memoryBytes: 0, gpus: 0 },
    start: () => Promise.reject(new Error("there is no room")),
    forget: async () => {},
    warm: undefined,
    takeOver: () => Promise.reject(new Error("none is reused")),
    init: () => {
      throw new Error("none is started");
    },
    log: openLog("test"),
    jobLog() {},
    spans: { started() {}, ready() {}, because() {}, ended() {} },
    end({ kind }) {
      throw new Error(kind);
    },
    onFault(error) {
      throw error;
    },
  });
}

describe("the machine's account", () => {
  it("reserves each GPU for one worker, including reservations of a previous controller", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: ["0", "1", "2"] });
    const need = { cpuMillis: 100, memoryBytes: 0, gpus: 1 };
    const before = account.occupyAgain(need, ["1"]);
    const pair = account.occupy({ ...need, gpus: 2 })!;
    expect(pair.gpus).toEqual(["0", "2"]);
    expect(account.occupy(need)).toBeUndefined();
    const granted: (readonly string[])[] = [];
    account.ask(need, ({ gpus }) => granted.push(gpus));
    await turn();
    expect(granted).toEqual([]);
    account.giveBack(before);
    await turn();
    expect(granted).toEqual([["1"]]);
    expect(account.describe(need, true)).toContain("of 1 CPU and 1024 MiB and 3 GPU");
  });

  it("lists who holds reservations, the largest first", async () => {
    const account = new ComputeAccount({ cpuMillis: 4000, memoryBytes: GIB, gpus: ["0"] });
    const need = { cpuMillis: 1000, memoryBytes: 0, gpus: 0 };
    expect(account.describe(need, true)).toMatch(/are free$/);
    account.occupy({ ...need, memoryBytes: GIB / 2 }, replicasOf("a"));
    const reservation = account.occupyAgain({ ...need, gpus: 1 }, ["0"], stagesOf("b"));
    for (let i = 0; i < 2; i++) account.ask(need, () => {}, workersOf("c", "c", 0));
    await turn();
    expect(account.describe(need, true)).toMatch(
      /each takes 1 CPU; 0 CPU .* of 4 CPU .* are free; reserved by application b \(1 CPU and 1 GPU\), job c of c \(2 CPU\), API a \(1 CPU and 512 MiB\); it starts when enough is free: .* start the server with a larger --cpus$/,
    );
    expect(account.describe(need, false)).toMatch(/ of 4 CPU .* are free; it starts when enough is free: /);
    const never = { cpuMillis: 5000, memoryBytes: 2 * GIB, gpus: 2 };
    expect(account.describe(never, true)).toMatch(
      /; it can never fit on this server: lower compute.cpu and compute.mem and compute.gpu, or start the server with a larger --cpus and --memory and --gpus$/,
    );
    account.giveBack(reservation);
    expect(account.describe(need, true)).not.toContain(stagesOf("b"));
    for (let i = 0; i < 6; i++) account.occupy({ ...need, cpuMillis: 1 }, replicasOf(`${i}`));
    expect(account.describe(need, true)).toMatch(/, API 2 \(0.001 CPU\), 3 more \(0.003 CPU\); it starts/);
  });

  it("grants requests in order, and a request that does not fit does not block the others", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
    const granted: string[] = [];
    const ask = (name: string, cpuMillis: number, memoryBytes = 0) =>
      account.ask({ cpuMillis, memoryBytes, gpus: 0 }, () => granted.push(name));
    let firsts: Reservation | undefined;
    account.ask({ cpuMillis: 600, memoryBytes: 0, gpus: 0 }, (reservation) => {
      granted.push("first");
      firsts = reservation;
    });
    ask("too much memory", 100, 2 * GIB);
    ask("second", 600);
    ask("small", 400, GIB);
    await turn();
    expect(granted).toEqual(["first", "small"]);
    account.giveBack(firsts!);
    await turn();
    expect(granted).toEqual(["first", "small", "second"]);
  });

  it("releases a reservation only once", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: ["0"] });
    const need = { cpuMillis: 1000, memoryBytes: GIB, gpus: 1 };
    const reservation = account.occupy(need)!;
    account.giveBack(reservation);
    account.giveBack(reservation);
    expect(account.capacityLeft({ cpuMillis: 500, memoryBytes: 0, gpus: 0 })).toBe(2);
    expect(account.occupy(need)!.gpus).toEqual(["0"]);
    expect(account.occupy({ cpuMillis: 0, memoryBytes: 0, gpus: 1 })).toBeUndefined();
  });

  it("never exceeds the machine; a previous controller's reservations stay, and others wait for them", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
    let granted = 0;
    const much = { cpuMillis: 1500, memoryBytes: 2 * GIB, gpus: 0 };
    expect(account.occupy(much)).toBeUndefined();
    const reservation = account.occupyAgain(much, []);
    const ask = account.ask({ cpuMillis: 200, memoryBytes: 0, gpus: 0 }, () => granted++);
    account.ask({ cpuMillis: 200, memoryBytes: 0, gpus: 0 }, () => granted++);
    await turn();
    expect(granted).toBe(0);
    expect(account.cancel(ask)).toBe(true);
    account.giveBack(reservation);
    await turn();
    expect(granted).toBe(1);
  });
});

describe("a reservation", () => {
  const small = { cpuMillis: 400, memoryBytes: GIB / 2, gpus: 0 };

  it("is exchanged in one step, so that no waiting request gets it", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: ["0"] });
    const granted: Reservation[] = [];
    const mine = account.occupy(small)!;
    account.ask({ cpuMillis: 800, memoryBytes: 0, gpus: 0 }, (reservation) => granted.push(reservation));
    const larger = { cpuMillis: 900, memoryBytes: GIB, gpus: 1 };
    const grown = account.exchange([mine], larger)!;
    await turn();
    expect([grown, granted, account.available]).toEqual([
      { ...larger, gpus: ["0"] },
      [],
      { cpuMillis: 100, memoryBytes: 0, gpus: 0 },
    ]);
    expect(account.exchange([grown], { ...larger, cpuMillis: 1001 })).toBeUndefined();
    expect(account.available.cpuMillis).toBe(100);
    account.giveBack(grown);
    await turn();
    expect(granted).toHaveLength(1);
  });

  it("may be kept even if more is reserved than the machine has", () => {
    const account = new ComputeAccount({ cpuMillis: 500, memoryBytes: GIB, gpus: [] });
    const [mine] = [account.occupyAgain(small, []), account.occupyAgain(small, [])];
    expect(account.exchange([mine!], { ...small, cpuMillis: 401 })).toBeUndefined();
    expect(account.exchange([mine!], { ...small, cpuMillis: 300 })).toMatchObject({ cpuMillis: 300 });
  });

  it("may borrow CPUs that are about to be released, but no memory and no GPU", () => {
    const account = new ComputeAccount({ cpuMillis: 500, memoryBytes: GIB, gpus: ["0"] });
    const old = account.occupy({ ...small, gpus: 1 })!;
    expect(account.borrow({ ...small, cpuMillis: 501 }, [old])).toBeUndefined();
    expect(account.borrow({ ...small, memoryBytes: GIB }, [old])).toBeUndefined();
    expect(account.borrow({ ...small, gpus: 1 }, [old])).toBeUndefined();
    expect(account.borrow({ ...small, cpuMillis: 500 }, [old])).toBeDefined();
    account.giveBack(old);
    expect(account.available).toEqual({ cpuMillis: 0, memoryBytes: GIB / 2, gpus: 1 });
  });

  it("is cut into the parts of a replica's processes", () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: ["0", "1"] });
    const parts = account.split(
      account.occupy({ cpuMillis: 800, memoryBytes: GIB, gpus: 2 }, replicasOf("a"))!,
      2,
    );
    expect(parts).toEqual(["0", "1"].map((gpu) => ({ cpuMillis: 400, memoryBytes: GIB / 2, gpus: [gpu] })));
    account.giveBack(parts[0]!);
    expect(account.describe(small, true)).toContain("reserved by API a (0.4 CPU and 512 MiB and 1 GPU)");
    account.giveBack(parts[1]!);
    expect(account.available).toEqual({ cpuMillis: 1000, memoryBytes: GIB, gpus: 2 });
  });

  it("is not granted to a request that is cancelled first", async () => {
    const account = new ComputeAccount({ cpuMillis: 400, memoryBytes: GIB, gpus: [] });
    const granted: string[] = [];
    const first = account.ask(small, () => granted.push("first"));
    account.ask(small, () => granted.push("second"));
    expect(account.cancel(first)).toBe(true);
    await turn();
    expect(granted).toEqual(["second"]);
    expect(account.cancel(first)).toBe(false);
  });
});

describe("a worker that waits for compute", () => {
  it("is pending for ten minutes, then stalled, and neither when it is no longer wanted", async () => {
    const account = new ComputeAccount({ cpuMillis: 100, memoryBytes: GIB, gpus: [] });
    const workers = jobWorkers(account);
    workers.keepAt(3);
    await turn();
    const now = performance.now();
    const counts = (nowMs: number) => {
      const { pending, stalled } = workers.counts(nowMs);
      return { pending, stalled };
    };
    expect(counts(now)).toEqual({ pending: 3, stalled: 0 });
    expect(counts(now + STALLED_AFTER_MS - 1000)).toEqual({ pending: 3, stalled: 0 });
    expect(counts(now + STALLED_AFTER_MS + 1)).toEqual({ pending: 0, stalled: 3 });
    workers.keepAt(1);
    expect(counts(now)).toEqual({ pending: 1, stalled: 0 });
    await workers.stopAll(0);
    expect(counts(now)).toEqual({ pending: 0, stalled: 0 });
  });

  it("is stalled counting from when it was last wanted, even before it requested compute", () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
    const workers = jobWorkers(account);
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    workers.keepAt(11);
    workers.keepAt(1);
    now.mockReturnValue(STALLED_AFTER_MS);
    workers.keepAt(11);
    now.mockRestore();
    expect(workers.counts(STALLED_AFTER_MS + 1)).toMatchObject({ pending: 10, stalled: 1 });
  });

  it("costs nothing while it waits, even with as many workers as a submission may request", async () => {
    const account = new ComputeAccount({ cpuMillis: 1000, memoryBytes: GIB, gpus: [] });
    // Nobody starts: all of the machine is taken.
    const taken = account.occupy({ cpuMillis: 1000, memoryBytes: 0, gpus: 0 })!;
    const others: number[] = [];
    const workers = jobWorkers(account);
    const count = Number.MAX_SAFE_INTEGER;
    workers.keepAt(count);
    account.ask(
      { cpuMillis: 1000, memoryBytes: 0, gpus: 0 },
      () => others.push(1),
      workersOf("another", "a", 0),
    );
    await turn();
    const now = performance.now();
    expect(workers.counts(now)).toMatchObject({ pending: count, stalled: 0 });
    expect(workers.counts(now + STALLED_AFTER_MS + 1)).toMatchObject({ pending: 0, stalled: count });
    expect(workers.describeWaiting(true)).toContain(`${count} workers wait`);
    workers.keepAt(2);
    expect(workers.counts(now)).toMatchObject({ pending: 2 });
    await workers.stopAll(0);
    account.giveBack(taken);
    await turn();
    expect(others).toEqual([1]);
  });
});
