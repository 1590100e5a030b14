/** What `quern get` says of an API whose pods do not serve. */
import { describe, expect, it } from "vitest";
import { describeLastExit } from "../../../src/apis/pods/describe-last-exit.ts";
import { type JudgedPod, judgePods } from "../../../src/apis/pods/judge-pods.ts";
import type { PodTrouble } from "../../../src/kubernetes/pod-trouble.ts";

const pod = (own: Partial<JudgedPod> = {}): JudgedPod => ({
  state: { phase: "starting", isInterruption: false },
  isServing: false,
  trouble: undefined,
  unprepared: undefined,
  ...own,
});
const inTrouble = (reason: PodTrouble["reason"], detail = "why"): JudgedPod =>
  pod({ state: { phase: "starting", trouble: { reason, detail }, isInterruption: false } });

const NO_MATCH = "ERROR: No matching distribution found for nowhere";
const NOT_INSTALLED = {
  ...{ message: "requirements.txt failed", is_final: true, is_of_environment: true },
  ...{ step: "requirements.txt", output: [NO_MATCH], python: "3.11", for_s: 0 },
};
const NOT_FETCHED = {
  ...{ message: "https://a/b cannot be read: refused", is_final: false, is_of_environment: false },
  ...{ step: null, output: [], python: null, for_s: 9.9 },
};

const CASES: [string, JudgedPod[], object][] = [
  ["no pods", [], {}],
  ["pods that take their time", [pod(), inTrouble("NotReady")], {}],
  ["a pod without a place", [inTrouble("Unschedulable")], { lack: "why" }],
  ["a pod that a queue holds back", [inTrouble("Gated")], { lack: "why" }],
  [
    "an image that cannot be pulled",
    [inTrouble("ImagePullFailed")],
    { failure: { kind: "other", message: "ImagePullFailed: why" } },
  ],
  [
    "a container that was killed for its memory",
    [inTrouble("OutOfMemory")],
    { failure: { kind: "memory", message: "OutOfMemory: why" } },
  ],
  ["a container that exits", [inTrouble("Exited")], { failure: { kind: "death", message: "Exited: why" } }],
  [
    "an __init__ that fails",
    [pod({ trouble: { kind: "init", message: "OSError: no model" } })],
    { failure: { kind: "init", message: "OSError: no model" } },
  ],
  [
    "packages that cannot be installed",
    [pod({ unprepared: NOT_INSTALLED })],
    {
      failure: {
        kind: "requirements",
        message:
          "requirements.txt failed: there is no nowhere for Python 3.11; require another version of it, or use " +
          `predictor.python to choose a Python that it has builds for\n${NO_MATCH}`,
      },
    },
  ],
  ["a server that does not answer for a moment", [pod({ unprepared: NOT_FETCHED })], {}],
  [
    "a server that does not answer",
    [pod({ unprepared: { ...NOT_FETCHED, for_s: 10 } })],
    { failure: { kind: "other", message: NOT_FETCHED.message } },
  ],
  [
    "files that are gone",
    [pod({ unprepared: { ...NOT_FETCHED, is_final: true } })],
    { failure: { kind: "other", message: NOT_FETCHED.message } },
  ],
  ["a pod whose node was emptied", [inTrouble("Drained"), inTrouble("NodeLost")], {}],
  [
    "a fault before a lack",
    [inTrouble("Unschedulable"), inTrouble("CannotStart")],
    {
      failure: { kind: "other", message: "CannotStart: why" },
    },
  ],
  ["a pod that serves", [{ ...inTrouble("Exited"), isServing: true }], {}],
];

describe("an API has", () => {
  it.each(CASES)("%s", (_, pods, expected) => {
    expect(judgePods(pods, undefined)).toEqual(expected);
  });

  it("pods that the cluster does not create", () => {
    const quota = 'pods "a" is forbidden: exceeded quota: none';
    expect(judgePods([], quota)).toEqual({ lack: quota });
    expect(judgePods([], "denied by policy")).toEqual({
      failure: { kind: "other", message: "denied by policy" },
    });
  });
});

describe("a worker's end", () => {
  it.each([
    [{ code: 3 }, "exited with code 3"],
    [{ signal: "SIGKILL" }, "was killed by SIGKILL"],
    [{ with_container: true }, "ended with its container"],
    [
      { signal: "SIGKILL", out_of_memory: true, peak_memory_bytes: 100 * 1024 * 1024 },
      "was killed because it needed more memory than its compute.mem (its peak memory was 100 MiB)",
    ],
    [{ out_of_memory: true }, "was killed because it needed more memory than its compute.mem"],
  ])("%j is described", (exit, words) => {
    expect(describeLastExit(exit)).toBe(words);
  });
});
