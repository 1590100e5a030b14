/**
 * What Quern makes of pods. `pods.json` has pods of a real Kubernetes 1.34, each brought into its state by a cause of
 * that kind; fields that Quern does not read were removed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Pod } from "../../src/kubernetes/pod.ts";
import { podState } from "../../src/kubernetes/pod-state.ts";
import { root } from "../harness/server.ts";

const pods = JSON.parse(readFileSync(join(root, "test", "kubernetes", "pods.json"), "utf8")) as Record<
  string,
  Pod
>;

/** The pod, its phase, the reason, what the detail says, and whether the cluster ended it. */
const STATES: readonly [string, string, string | undefined, RegExp | undefined, boolean][] = [
  ["new", "pending", undefined, undefined, false],
  [
    "unschedulable",
    "pending",
    "Unschedulable",
    /no node has a place for it: 0\/2 nodes .*Insufficient cpu/,
    false,
  ],
  ["without a GPU", "pending", "Unschedulable", /Insufficient nvidia\.com\/gpu/, false],
  [
    "without a node of its labels",
    "pending",
    "Unschedulable",
    /didn't match Pod's node affinity\/selector/,
    false,
  ],
  ["gated", "pending", "Gated", /until a queue admits it/, false],
  ["creating", "starting", undefined, undefined, false],
  ["pulling fails", "starting", "ImagePullFailed", /quern\.test\/missing:1/, false],
  [
    "pulling backs off",
    "starting",
    "ImagePullFailed",
    /Back-off pulling image "quern\.test\/missing:1"/,
    false,
  ],
  ["image never pulled", "starting", "ImagePullFailed", /not present with pull policy of Never/, false],
  ["image name", "starting", "ImagePullFailed", /"Not An Image".*must be lowercase/, false],
  ["no secret", "starting", "CannotStart", /secret "absent" not found/, false],
  ["root refused", "starting", "CannotStart", /breaks non-root policy/, false],
  ["cannot run", "starting", "CannotStart", /\/no\/such\/program: no such file/, false],
  ["cannot run, backs off", "starting", "CannotStart", /\/no\/such\/program: no such file/, false],
  ["exits", "starting", "Exited", /^container worker exited with code 3$/, false],
  ["exits, backs off", "starting", "Exited", /^container worker exited with code 3$/, false],
  ["not live, backs off", "starting", "Exited", /^container worker was killed by signal 9$/, false],
  ["first container fails", "starting", "Exited", /^container first exited with code 4$/, false],
  ["out of memory, backs off", "starting", "OutOfMemory", /more memory than its limit/, false],
  ["out of memory", "failed", "OutOfMemory", /more memory than its limit/, false],
  ["starting", "starting", "NotReady", /^it runs, but is not ready$/, false],
  ["ready", "ready", undefined, undefined, false],
  ["succeeded", "succeeded", undefined, undefined, false],
  ["failed", "failed", "Exited", /^container worker exited with code 3$/, false],
  ["evicted", "failed", "Evicted", /^Usage of EmptyDir volume "s" exceeds the limit "1Mi"\.$/, true],
  ["deadline", "failed", "DeadlineExceeded", /longer than the specified deadline/, false],
  ["drained", "failed", "Drained", /^somebody emptied its node \(Eviction API: evicting\)$/, true],
  ["preempted", "failed", "Preempted", /^a pod of higher priority took its place/, true],
  ["preempted, ends", "leaving", "Preempted", /^a pod of higher priority took its place/, true],
  ["deleted", "leaving", undefined, undefined, false],
  ["node silent", "starting", "NodeSilent", /^node n4 does not report to the cluster$/, false],
  ["node lost", "lost", "NodeLost", /^its node is gone.*NoExecute taint/, true],
];

it.each(STATES)("says of a pod that is %s: %s, %s", (name, phase, reason, detail, isInterruption) => {
  const state = podState(pods[name]!);
  expect([state.phase, state.trouble?.reason, state.isInterruption]).toEqual([phase, reason, isInterruption]);
  if (detail === undefined) expect(state.trouble).toBeUndefined();
  else expect(state.trouble?.detail).toMatch(detail);
});

it("has a row for each pod that was provoked", () => {
  expect(STATES.map(([name]) => name).sort()).toEqual(Object.keys(pods).sort());
});

it("says what the container itself says about why it is not ready", () => {
  const why = "__init__ failed: ValueError: no model";
  expect(podState(pods.starting!, why).trouble).toEqual({ reason: "NotReady", detail: why });
  expect(podState(pods.ready!, why).trouble).toBeUndefined();
  expect(podState(pods["out of memory, backs off"]!, why).trouble?.reason).toBe("OutOfMemory");
});

it("takes a pod that the kubelet did not admit for one that the cluster ended", () => {
  const status = { phase: "Failed", reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" };
  expect(podState({ metadata: { name: "x" }, status })).toEqual({
    phase: "failed",
    trouble: { reason: "Refused", detail: "OutOfcpu: Node didn't have enough resource: cpu" },
    isInterruption: true,
  });
});

it("bounds the words of the cluster", () => {
  const conditions = [
    { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "x".repeat(5_000) },
  ];
  expect(podState({ metadata: { name: "x" }, status: { conditions } }).trouble?.detail.length).toBe(1_000);
});
