/** The pods of a job as compute: who gets which, and when one is free again. */
import { beforeEach, describe, expect, it } from "vitest";
import { JobPod } from "../../../src/batch/pods/job-pod.ts";
import { JobPodSet } from "../../../src/batch/pods/job-pod-set.ts";
import type { Reservation } from "../../../src/engine/reservations.ts";
import type { Pod } from "../../../src/kubernetes/pod.ts";

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
    const unprepared = (is_final: boolean, for_s: number) => ({
      ...{ message: "no", is_final, for_s, is_of_environment: true, step: null, output: [], python: null },
    });
    const fails = (name: string, is_final: boolean, for_s: number) => {
      const pod = new JobPod(podOf(name, "job-1"), { jobId: "j", api: "a", isSettled: true });
      pod.unprepared = unprepared(is_final, for_s);
      set.pods.set(name, pod);
      set.grant();
      return pod;
    };
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
    passes.unprepared = unprepared(false, 300);
    set.grant();
    expect(set.podOf(got[1]!)).toBe(passes);
  });

  it("that are not prepared end nothing while a worker has another one", () => {
    ask();
    add("p");
    ask();
    const pod = new JobPod(podOf("q", "job-1"), { jobId: "j", api: "a", isSettled: true });
    const failure = { message: "no", is_final: true, for_s: 999, is_of_environment: false };
    pod.unprepared = { ...failure, step: null, output: [], python: null };
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
