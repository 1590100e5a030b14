/** What `quern doctor --namespace` makes of what it found, and of a cluster that does not let it in. */
import { expect, it } from "vitest";
import { clusterFindings } from "../../src/cli/kubernetes/doctor.ts";
import type { PodFound } from "../../src/cli/server/context.ts";
import { accessTrouble } from "../../src/kubernetes/access-trouble.ts";
import { ApiError } from "../../src/kubernetes/api-error.ts";

const cluster = { server: "https://k", version: "v1.34.4", lack: undefined };
const results = (...pods: PodFound[]) =>
  clusterFindings("ml", { ...cluster, pods }).map(({ check, result }) => `${check}: ${result}`);

it("fails only for pods that do not become ready by themselves", () => {
  const pods: PodFound[] = [
    { name: "a", phase: "ready" },
    { name: "b", phase: "starting" },
    { name: "c", phase: "starting", reason: "NotReady", detail: "it runs, but is not ready" },
    { name: "d", phase: "pending", reason: "Unschedulable", detail: "no node has a place for it" },
  ];
  expect(results(...pods)).toEqual(["cluster: ok", "pod a: ok", "pod b: warn", "pod c: warn", "pod d: fail"]);
});

it("names the pod in the command that helps", () => {
  const pod = {
    name: "quern-0",
    phase: "starting",
    reason: "Exited",
    detail: "x",
    cure: "`kubectl logs POD`",
  };
  expect(clusterFindings("ml", { ...cluster, pods: [pod] })[1]!.cure).toBe("`kubectl logs quern-0`");
});

it("says why there is no pod, if the cluster says so", () => {
  const found = { ...cluster, pods: [], lack: "exceeded quota: small" };
  expect(clusterFindings("ml", found)[1]).toMatchObject({ result: "fail", detail: "exceeded quota: small" });
});

it.each([
  [new ApiError(401, "Unauthorized", "Unauthorized"), /does not accept the credentials/, /renew the token/],
  [
    new ApiError(403, "Forbidden", 'User "ann" cannot list pods'),
    /"ann" cannot list/,
    /can-i list pods -n ml/,
  ],
  [new ApiError(500, "InternalError", "etcd"), /https:\/\/k: etcd/, /ask who runs the cluster/],
  [
    Object.assign(new Error("self-signed"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }),
    /not trusted/,
    /authority/,
  ],
  [
    Object.assign(new Error(""), { code: "ECONNREFUSED" }),
    /cannot be reached: ECONNREFUSED/,
    /current context/,
  ],
])("says what to do about %s", (error, detail, cure) => {
  const trouble = accessTrouble(error, "https://k", "list pods -n ml");
  expect(trouble).toEqual({ detail: expect.stringMatching(detail), cure: expect.stringMatching(cure) });
});
