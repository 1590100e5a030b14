/** What a worker's end in a pod means: the batch's fault, or the cluster's. */
import { describe, expect, it } from "vitest";
import { howOver } from "../../../src/batch/pods/job-pod.ts";
import { type ExitFacts, noteOf, workerExit } from "../../../src/batch/pods/pod-exit.ts";

const FACTS: ExitFacts = {
  exit: { signal: "SIGSEGV", peak_memory_bytes: 5, last_lines: ["x"] },
  isKilledByUs: false,
  containerEnd: undefined,
  memoryLimitBytes: 7,
};

describe("the exit of a worker", () => {
  it("is as its launcher tells it", () => {
    const facts = { signal: "SIGSEGV", peakMemoryBytes: 5, memoryLimitBytes: 7, lastLines: ["x"] };
    expect(workerExit(FACTS)).toEqual(facts);
    expect(workerExit({ ...FACTS, exit: undefined, memoryLimitBytes: undefined })).toEqual({});
  });

  it.each<[string, Partial<ExitFacts>]>([
    ["the launcher has seen it", { exit: { signal: "SIGKILL", out_of_memory: true } }],
    ["the kubelet has", { exit: { with_container: true }, containerEnd: "OOMKilled" }],
    ["Quern killed it afterwards", { exit: { out_of_memory: true }, isKilledByUs: true }],
  ])("is for its memory, if %s", (_, facts) => {
    const exit = workerExit({ ...FACTS, ...facts });
    expect(exit.outOfMemory).toBe("limit");
    expect(exit.interruption).toBeUndefined();
  });

  it.each<[string, Partial<ExitFacts>]>([
    ["was ended by Quern", { exit: { signal: "SIGKILL" }, isKilledByUs: true }],
    ["ended with its container", { exit: { with_container: true } }],
    ["ended with its container (Error)", { exit: { with_container: true }, containerEnd: "Error" }],
  ])("is an interruption: it %s", (interruption, facts) => {
    expect(workerExit({ ...FACTS, ...facts }).interruption).toBe(interruption);
  });
});

it("a note that a launcher tells has all that says who had the batch", () => {
  const note = { epoch: 1, connection: 2, delivery: 3, batch_index: 4, busy: true };
  expect(noteOf(note)).toEqual({ ...note, since: 0n });
  expect(noteOf(null)).toBeUndefined();
});

describe("a pod", () => {
  it("is over once the cluster takes it away, and says how", () => {
    const trouble = { reason: "Evicted", detail: "The node was low on memory" } as const;
    expect(howOver({ phase: "failed", trouble, isInterruption: true })).toBe(
      "lost its pod (Evicted: The node was low on memory)",
    );
    expect(howOver({ phase: "leaving", isInterruption: false })).toBe(
      "lost its pod: somebody has deleted it",
    );
    expect(howOver({ phase: "succeeded", isInterruption: false })).toBe("lost its pod: it has ended");
  });

  it.each(["pending", "starting", "ready"] as const)("is not over while it is %s", (phase) => {
    expect(howOver({ phase, isInterruption: false })).toBeUndefined();
  });
});
