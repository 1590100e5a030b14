/** Which jobs come before those of a lower priority. */
import { expect, it } from "vitest";
import { type Claimant, replicasOf, stagesOf, workersOf } from "../../../src/engine/scheduler/claims.ts";
import { jobsAbove } from "../../../src/engine/scheduler/jobs-above.ts";

const by = (...claimants: Claimant[]) => claimants.map((claimant) => ({ by: claimant }));
const job = (id: string, api: string, priority: number) => workersOf(id, api, priority);

it("jobs of a higher priority are counted once each, whether they have compute or wait for it", () => {
  const one = job("1", "a", 2);
  const claims = by(one, one, job("2", "b", 1), job("3", "b", 0));
  const held = by(one, one, job("4", "b", 5), job("5", "c", -1));
  expect(jobsAbove(0, claims, held)).toEqual({ count: 3, waiting: 2, apis: ["b", "a"] });
  expect(jobsAbove(5, claims, held)).toEqual({ count: 0, waiting: 0, apis: [] });
});

it("replicas and applications are no jobs of a higher priority", () => {
  const others = by(replicasOf("live"), stagesOf("app"));
  expect(jobsAbove(-1, others, others).count).toBe(0);
});
