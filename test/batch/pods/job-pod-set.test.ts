/** The pods of a job as compute: who gets which, and when one is free again. */
import { beforeEach, describe, expect, it } from "vitest";
import { JobPod } from "../../../src/batch/pods/job-pod.ts";
import { JobPodSet } from "../../../src/batch/pods/job-pod-set.ts";
import { UNPREPARED_MAX_MS } from "../../../src/contracts/limits/kubernetes/pods.ts";
import type { Reservation } from "../../../src/engine/reservations.ts";
import type { Pod } from "../../../src/kubernetes/pod.ts";
import type { LauncherFacts } from "../../../src/kubernetes/pods/launcher.ts";

const NEED = { cpuMillis: 50, memoryBytes: 7, gpus: 0 };
let set: JobPodSet;
let wanted: number[];
let got: Reservation[];

beforeEach(() => {
  wanted = [];
  got = [];
  set = new JobPodSet("j", (changed) => wanted.push(changed.wanted));
  set.jobUid = "job-1";
});

const podOf = (name: string, owner: string, more: Partial<Pod["metadata"]> = {}): Pod => ({
  metadata: { name, uid: name, ownerReferences: [{ uid: owner }], ...more },
  status: { phase: "Running", podIP: "10.0.0.1" },
});
function add(name: string, owner = "job-1"): JobPod {
  const pod = new JobPod(podOf(name, owner), { jobId: "j", api: "a", isSettled: true });
  pod.isPrepared = true;
  set.pods.set(name, pod);
  set.grant();
  return pod;
}
const failure = (is_final: boolean, for_s: number) => ({
  ...{ message: "no", is_final, for_s, is_of_environment: true, step: null, output: [], python: null },
});
/** A pod that cannot be prepared. */
function fails(name: string, is_final: boolean, for_s: number): JobPod {
  const pod = new JobPod(podOf(name, "job-1"), { jobId: "j", api: "a", isSettled: true });
  pod.unprepared = failure(is_final, for_s);
  set.pods.set(name, pod);
  set.grant();
  return pod;
}
/** A pod that a former controller has left. */
function former(name: string): JobPod {
  const pod = new JobPod(podOf(name, "job-1"), { jobId: "j", api: "a", isSettled: false });
  pod.isSettled = true;
  set.pods.set(name, pod);
  return pod;
}
const FACTS: LauncherFacts = {
  ...{ state: "starting", reason: null, failure: null, starts: 0, pid: null, last_exit: null, note: null },
};
const FAILS: LauncherFacts = { ...FACTS, state: "failed", failure: failure(true, 999) };
const later = () => performance.now() + UNPREPARED_MAX_MS;
const ask = () => set.ask(NEED, (reservation) => got.push(reservation), { priority: 3 });

describe("the pods of a job", () => {
  it("are given to those that ask, each once, and only those of its present Job", () => {
    ask();
    ask();
    add("former", "job-0");
    expect(got).toEqual([]);
    const first = add("first");
    expect(got).toEqual([{ cpuMillis: 50, memoryBytes: 7, gpus: [] }]);
    expect(set.podOf(got[0]!)).toBe(first);
    expect([set.wanted, set.isWaiting]).toEqual([2, true]);
    add("second");
    expect(got).toHaveLength(2);
    expect([set.wanted, set.isWaiting]).toEqual([2, false]);
  });

  it("are not given while a former controller's worker may run there, or they are not prepared", () => {
    const pod = new JobPod(podOf("p", "job-1"), { jobId: "j", api: "a", isSettled: false });
    set.pods.set("p", pod);
    ask();
    set.grant();
    pod.isPrepared = true;
    set.grant();
    expect(got).toEqual([]);
    pod.isSettled = true;
    set.grant();
    expect(got).toHaveLength(1);
  });

  it("stay with their worker's successor, unless they were taken away", () => {
    ask();
    const pod = add("p");
    expect(set.mayKeep(got[0]!)).toBe(true);
    let isOver = false;
    pod.whenOver(() => {
      isOver = true;
    });
    pod.changed(podOf("p", "job-1", { deletionTimestamp: "2026-01-01T00:00:00Z" }));
    expect([set.mayKeep(got[0]!), isOver]).toEqual([false, true]);
  });

  it("end a job once if its first pod cannot be prepared for good, or none for a long time", () => {
    for (let asked = 0; asked < 3; asked++) ask();
    const [, passes] = [fails("former", false, 299), fails("p", false, 1)];
    expect(got).toEqual([]);
    const final = fails("f", true, 0);
    expect([got.length, set.podOf(got[0]!)]).toEqual([1, final]);
    set.giveBack(got[0]!);
    // It is given once, whoever asks again.
    expect(got).toHaveLength(1);
    set.hasPrepared = true;
    fails("later", true, 0);
    expect(got).toHaveLength(1);
    passes.unprepared = failure(false, 300);
    set.grant();
    expect(got).toHaveLength(1);
    set.grant(later());
    expect(set.podOf(got[1]!)).toBe(passes);
  });

  it("that are not prepared end nothing when the only worker has just lost its pod", () => {
    ask();
    const lost = add("lost");
    const bad = fails("bad", true, 999);
    set.hasPrepared = true;
    lost.changed(podOf("lost", "job-1", { deletionTimestamp: "2026-01-01T00:00:00Z" }));
    ask();
    set.giveBack(got[0]!);
    set.grant(later() - 1_000);
    expect(got).toHaveLength(1);
    set.grant(later());
    expect(set.podOf(got[1]!)).toBe(bad);
  });

  it("that are not prepared end nothing while a job that had no work has just begun to ask", () => {
    const begun = performance.now();
    const before = ask();
    set.cancel(before);
    while (performance.now() - begun < 5);
    ask();
    fails("bad", false, 999);
    set.grant(begun + UNPREPARED_MAX_MS + 4);
    expect(got).toEqual([]);
  });

  it("that are not prepared end nothing after a restart of the controller, if one was before", () => {
    ask();
    const [works, bad] = [former("works"), former("bad")];
    set.answered(bad, FAILS);
    // Whether the other one was prepared is not known yet.
    expect(got).toEqual([]);
    // Its worker was killed, and its successor has not started.
    set.answered(works, { ...FACTS, starts: 3 });
    expect(got).toEqual([]);
    set.answered(works, { ...FACTS, starts: 4, pid: 7 });
    expect(set.podOf(got[0]!)).toBe(works);
  });

  it("that are not prepared end a job after a restart if no other one was, or it was ready once", () => {
    ask();
    const [other, bad] = [former("other"), former("bad")];
    set.answered(bad, FAILS);
    set.answered(other, FACTS);
    expect(set.podOf(got[0]!)).toBe(bad);
    set.giveBack(got[0]!);
    const isReady = { type: "Ready", status: "True" };
    const isPlaced = { type: "PodScheduled", status: "True" };
    const { metadata } = podOf("other", "job-1");
    other.changed({ metadata, status: { phase: "Running", conditions: [isPlaced, isReady] } });
    set.seen(other);
    expect(set.hasPrepared).toBe(true);
  });

  it("that are not prepared end nothing while a worker has another one", () => {
    ask();
    add("p");
    ask();
    const pod = new JobPod(podOf("q", "job-1"), { jobId: "j", api: "a", isSettled: true });
    pod.unprepared = failure(true, 999);
    set.pods.set("q", pod);
    set.grant();
    expect(got).toHaveLength(1);
    set.giveBack(got[0]!);
    set.cancel(set.ask(NEED, () => {}, { priority: 0 }));
    expect(got).toHaveLength(2);
  });

  it("are free again when they are given back, which is told", () => {
    const waiting = ask();
    add("p");
    expect(set.cancel(waiting)).toBe(false);
    set.giveBack(got[0]!);
    set.giveBack(got[0]!);
    expect(wanted).toEqual([1, 1, 0]);
    expect(set.cancel(set.ask(NEED, () => {}, { priority: 0 }))).toBe(true);
  });

  it("are only those that have a place while a job of a higher priority has none", () => {
    for (let asked = 0; asked < 3; asked++) ask();
    const placed = { phase: "Running", conditions: [{ type: "PodScheduled", status: "True" }] };
    add("p").changed({ ...podOf("p", "job-1"), status: placed });
    const noPlace = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/2" };
    const { metadata } = podOf("q", "job-1");
    const pending = { metadata, status: { phase: "Pending", conditions: [noPlace] } };
    set.pods.set("q", new JobPod(pending, { jobId: "j", api: "a", isSettled: true }));
    set.parallelism = 3;
    expect([set.hasNoPlace, set.priority, set.parallelismAt(0)]).toEqual([true, 3, 3]);
    set.isHeldBack = true;
    expect([set.parallelismAt(0), set.describe()]).toEqual([
      1,
      "a job of a higher priority waits for a place on a node, and comes first",
    ]);
    set.queue = "gpus";
    expect(set.parallelismAt(0)).toBe(3);
  });
});
