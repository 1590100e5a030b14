/** How long jobs wait and what they get, over a simulated day and in the situations that users of others complain of. */
import { describe, expect, it } from "vitest";
import { seeded } from "../../harness/random.ts";
import { type JobSpec, type SimulatedJob, SimulatedMachine } from "./simulated-machine.ts";

const HOUR = 3600;
const tenWorkers = { name: "ten", workers: 10, cpus: 1, batches: 1e6, batchSeconds: 1, startSeconds: 1 };
const narrow = { name: "narrow", workers: 1, cpus: 1, batches: 20, batchSeconds: 1, startSeconds: 0.5 };
const wide = { name: "wide", workers: 1, cpus: 4, batches: 90, batchSeconds: 2, startSeconds: 3 };

/** The seconds until its first worker was ready; so far, if none was. */
function waited(machine: SimulatedMachine, { beganAt, readyAt }: SimulatedJob): number {
  return (readyAt ?? machine.now) - beganAt;
}

/** Half-second steps; `submissions` may add jobs before each. */
function run(machine: SimulatedMachine, seconds: number, submissions: (second: number) => void = () => {}) {
  const begun = machine.now;
  while (machine.now - begun < seconds) {
    submissions(machine.now);
    machine.step();
  }
}

it("a small job beside one with ten workers starts within 5 s, in its API and in another", () => {
  const machine = new SimulatedMachine();
  machine.submit({ ...tenWorkers, api: "a" });
  run(machine, 60);
  const small = ["a", "b"].map((api) => machine.submit({ ...narrow, api }));
  run(machine, 10);
  for (const job of small) expect(waited(machine, job)).toBeLessThan(5);
});

it("a wide job starts within 30 s under a feed of narrow ones that fills the machine", () => {
  for (const api of ["feed", "other"]) {
    const machine = new SimulatedMachine();
    // Each lasts 20 s, and 0.6 come a second: 2 more than the machine can run at once.
    const feed = (second: number) => second % 5 < 1.5 && machine.submit({ ...narrow, api: "feed" });
    run(machine, 120, feed);
    const job = machine.submit({ ...wide, api });
    run(machine, 60, feed);
    expect(waited(machine, job), `in ${api}`).toBeLessThan(30);
  }
});

it("two equal jobs get the same within 5 %, in one API and in two", () => {
  for (const api of ["a", "b"]) {
    const machine = new SimulatedMachine();
    const first = machine.submit({ ...tenWorkers, api: "a" });
    run(machine, 60);
    const second = machine.submit({ ...tenWorkers, api });
    const before = first.workerSeconds;
    run(machine, HOUR);
    const ratio = second.workerSeconds / (first.workerSeconds - before);
    expect(ratio).toBeGreaterThan(0.95);
    expect(ratio).toBeLessThan(1.05);
  }
});

describe("a day of nightly jobs, reports, a feed of small jobs and wide ones", () => {
  const machine = new SimulatedMachine();
  const random = seeded(7);
  const reports = { ...tenWorkers, name: "reports", batches: 40_000, batchSeconds: 2, startSeconds: 2 };
  const submit = (spec: JobSpec) => machine.submit(spec);
  run(machine, 24 * HOUR, (second) => {
    if (second % (8 * HOUR) === 0) submit({ ...tenWorkers, api: "nightly", batches: 100_000 });
    if (second % (12 * HOUR) === HOUR) submit({ ...reports, api: "reports" });
    const batches = Math.ceil(random() * 30);
    if (random() < 1 / 40) submit({ ...narrow, api: "feed", batches });
    if (random() < 1 / HOUR) submit({ ...wide, api: "wide" });
  });
  const of = (name: string) => machine.jobs.filter((job) => job.name === name);

  it("has work for all of it", () => {
    expect(of("narrow").length).toBeGreaterThan(4_000);
    expect(of("wide").length).toBeGreaterThan(10);
    const busy = machine.jobs.reduce((sum, { workerSeconds }) => sum + workerSeconds, 0);
    expect(busy / (10 * 24 * HOUR)).toBeGreaterThan(0.6);
  });

  it("no job waits for its first worker longer than a worker may keep its compute, and wide ones 30 s", () => {
    // The workers of the reports may work for ten times 2 s, and have a batch of 2 s; then comes the start.
    const longest = 10 * reports.startSeconds + reports.batchSeconds;
    for (const job of machine.jobs)
      if (job.name !== "wide")
        expect(waited(machine, job)).toBeLessThanOrEqual(longest + job.startSeconds + 1);
    for (const job of of("wide")) expect(waited(machine, job)).toBeLessThan(30);
  });

  it("no API or job falls behind by more than what all workers may keep", () => {
    expect(machine.largestDeficit).toBeGreaterThan(0);
    expect(machine.largestDeficit).toBeLessThanOrEqual(10 * 10 * wide.startSeconds);
  });

  it("all jobs end, and yields cost less than a tenth of the work", () => {
    for (const job of machine.jobs)
      if (job.beganAt < 20 * HOUR) expect(job.endedAt, job.by.job).toBeDefined();
    for (const job of [...of("ten"), ...of("reports")])
      expect((job.yields * job.startSeconds) / job.workerSeconds).toBeLessThan(0.1);
    expect(of("ten")[0]!.yields).toBeGreaterThan(100);
  });
});
