/** Which events say why a server has no pods. */
import { expect, it } from "vitest";
import { type ClusterEvent, newestOf } from "../../src/kubernetes/cluster-event.ts";

const event = (kind: string, name: string, message: string, lastTimestamp?: string): ClusterEvent => ({
  metadata: { name: `${name}.1`, creationTimestamp: "2026-01-01T00:00:00Z" },
  involvedObject: { kind, name },
  message,
  ...(lastTimestamp !== undefined && { lastTimestamp }),
});
const said = (...events: ClusterEvent[]) => newestOf("quern", events)?.message;

it("are those of the StatefulSet, and of the ReplicaSet of the Deployment", () => {
  expect(said(event("StatefulSet", "quern", "a"))).toBe("a");
  expect(said(event("ReplicaSet", "quern-5d9c7f8b6d", "b"))).toBe("b");
});

it("are not those of the workers of an API, of a job, or of somebody else", () => {
  expect(said(event("ReplicaSet", "quern-flowers-api-5d9c7f8b6d", "a"))).toBe(undefined);
  expect(said(event("Job", "quern-job", "a"), event("ReplicaSet", "other-5d9c7f8b6d", "b"))).toBe(undefined);
});

it("is the newest one, whatever their order and fields", () => {
  const [old, newest] = ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"];
  expect(said(event("StatefulSet", "quern", "new", newest), event("StatefulSet", "quern", "old", old))).toBe(
    "new",
  );
  const timed = { ...event("StatefulSet", "quern", "timed"), lastTimestamp: null, eventTime: newest };
  expect(said(timed, event("StatefulSet", "quern", "old", old))).toBe("timed");
  expect(said(event("StatefulSet", "quern", "created"), event("StatefulSet", "quern", "old", old))).toBe(
    "old",
  );
});
