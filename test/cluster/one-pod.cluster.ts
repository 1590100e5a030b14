/** The pod of `quern export kubernetes` in a real Kubernetes: the guide's steps, and what happens when it dies or moves. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { kubectl } from "./kubectl.ts";
import { Pod } from "./pod.ts";
import { deploySquares, expectExact, jobInTheMiddle } from "./squares.ts";

const pod = new Pod("ml");
beforeAll(async () => {
  pod.prepare();
  await pod.start();
  deploySquares(pod);
}, 300_000);
afterAll(() => pod.end());

it("answers with a key only, and predicts as the user of the container", async () => {
  expect((await pod.fetch("/-/readyz", { key: "" })).status).toBe(200);
  expect((await pod.predict("echo", 1, "")).status).toBe(401);
  const key = /quern_[\w-]{32}/.exec(pod.exec("cat", "/var/lib/quern/first-key"))![0];
  const response = await pod.predict("echo", 1, key);
  expect([response.status, await response.json()]).toEqual([200, { echo: 1, user: 1000 }]);
});

it("finishes a job exactly after it was deleted in the middle", async () => {
  const id = await jobInTheMiddle(pod);
  await pod.replace();
  await expectExact(pod, id);
});

it("finishes a job exactly after it was deleted without a moment to end", async () => {
  const id = await jobInTheMiddle(pod);
  await pod.replace("--grace-period=0", "--force");
  await expectExact(pod, id);
});

it("finishes a job exactly on another node", async () => {
  const id = await jobInTheMiddle(pod);
  const before = pod.node;
  kubectl(["cordon", before]);
  try {
    await pod.replace();
    expect(pod.node).not.toBe(before);
    await expectExact(pod, id);
  } finally {
    kubectl(["uncordon", before]);
  }
});

it("starts its container again if all its processes are killed, and finishes the job exactly", async () => {
  const id = await jobInTheMiddle(pod);
  const before = pod.restarts;
  // All but the first process and the shell itself. The first process ends with the server.
  pod.exec("sh", "-c", "kill -9 -1");
  await eventually("the container was started again", () => pod.restarts > before, 120_000);
  await expectExact(pod, id);
  expect((await pod.predict("echo", 2)).status).toBe(200);
});

it("has no right in the cluster but to ask for its rights, and no token", () => {
  const account = `system:serviceaccount:${pod.namespace}:quern`;
  const rights = kubectl(["auth", "can-i", "--list", "--no-headers", `--as=${account}`, "-n", pod.namespace]);
  const resources = rights.split("\n").map((line) => line.split(/\s+/)[0]);
  expect(resources.filter((name) => name !== "" && !/^self.*reviews\./.test(name!))).toEqual([]);
  expect(pod.exec("sh", "-c", "ls /var/run/secrets 2>&1 || true")).toContain("No such file");
});
