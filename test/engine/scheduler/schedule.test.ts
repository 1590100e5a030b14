/** The scheduler's decisions, as tables of who waits and who has what. */
import { expect, it } from "vitest";
import {
  type Claim,
  type Claimant,
  type Holding,
  replicasOf,
  workersOf,
} from "../../../src/engine/scheduler/claims.ts";
import { type Situation, schedule } from "../../../src/engine/scheduler/schedule.ts";

const NOW = 100_000;
const cpus = (count: number) => ({ cpuMillis: 1000 * count, memoryBytes: 0, gpus: 0 });
const waits = (by: Claimant, count = 1, waitedMs = 0): Claim => ({
  by,
  need: cpus(count),
  sinceMs: NOW - waitedMs,
});
const has = (by: Claimant, count = 1, more: Partial<Holding> = {}): Holding => ({
  ...{ by, compute: cpus(count), yieldsFromMs: NOW, isYielding: false },
  ...more,
});
/** The name of its job. */
const nameOf = ({ job }: Claimant) => job.split(" ").at(-1);
const big = workersOf("big", "a", 0);
const small = workersOf("small", "a", 0);
const other = workersOf("other", "b", 0);

function decide(given: Partial<Situation<Claim, Holding>>) {
  const none = { claims: [], held: [], deficits: new Map<string, number>() };
  const decision = schedule({ nowMs: NOW, seconds: 0, free: cpus(0), ...none, ...given });
  return {
    granted: decision.granted.map(({ by }) => nameOf(by)),
    yielding: [...decision.yielding].map(({ by }) => nameOf(by)),
    delays: [...decision.delays.values()],
    deficits: decision.deficits,
  };
}

it("a worker of a job that has several yields to a job without any", () => {
  const held = Array.from({ length: 10 }, () => has(big));
  const claims = [waits(big), waits(small)];
  expect(decide({ held, claims })).toMatchObject({ granted: [], yielding: ["big"] });
});

it("a worker that has just started is not asked to yield", () => {
  const held = [1, 2].map(() => has(big, 1, { yieldsFromMs: NOW + 1 }));
  expect(decide({ held, claims: [waits(small)] }).yielding).toEqual([]);
});

it("jobs of two APIs that both have workers move one only for a difference of more than one", () => {
  const held = (bigs: number) => [...Array.from({ length: bigs }, () => has(big)), has(other)];
  expect(decide({ held: held(2), claims: [waits(other)] }).yielding).toEqual([]);
  expect(decide({ held: held(3), claims: [waits(other)] }).yielding).toEqual(["big"]);
});

it("free compute goes to a job without workers, then to the API with the fewest, then to the oldest", () => {
  const held = [has(big), has(big), has(other)];
  const claims = [waits(big), waits(other), waits(other), waits(small)];
  expect(decide({ held, claims, free: cpus(1) }).granted).toEqual(["other"]);
  expect(decide({ held, claims, free: cpus(4) }).granted).toEqual(["other", "small", "other", "big"]);
});

it("a claim that does not fit does not hold up those after it", () => {
  const claims = [waits(other, 4, 9_999), waits(small)];
  expect(decide({ held: [has(big, 4)], claims, free: cpus(1) }).granted).toEqual(["small"]);
});

it("free compute is set aside for a wide claim that has waited for ten seconds", () => {
  const held = [1, 2, 3].map(() => has(big, 1, { yieldsFromMs: NOW + 1 }));
  const claims = (waitedMs: number) => [waits(other, 4, waitedMs), waits(small)];
  expect(decide({ held, claims: claims(9_999), free: cpus(1) }).granted).toEqual(["small"]);
  expect(decide({ held, claims: claims(10_000), free: cpus(1) }).granted).toEqual([]);
});

it("a claim that can never fit sets nothing aside", () => {
  const claims = [waits(other, 40, 60_000), waits(small)];
  expect(decide({ held: [has(big)], claims, free: cpus(1) }).granted).toEqual(["small"]);
});

it("a job of a higher priority gets what it can use before any other, from their workers too", () => {
  const urgent = workersOf("urgent", "a", 1);
  const held = [has(big), has(other)];
  expect(decide({ held, claims: [waits(small), waits(urgent), waits(urgent)] }).yielding).toEqual([
    "big",
    "other",
  ]);
  const claims = [waits(small), waits(urgent, 4)];
  expect(decide({ held: [has(big, 3, { yieldsFromMs: NOW + 1 })], claims, free: cpus(1) }).granted).toEqual(
    [],
  );
  expect(decide({ held: [has(urgent)], claims: [waits(small)] }).yielding).toEqual([]);
});

it("workers of jobs yield to a replica, and replicas to nobody", () => {
  expect(decide({ held: [has(big)], claims: [waits(replicasOf("live"))] }).yielding).toEqual(["big"]);
  expect(decide({ held: [has(replicasOf("live"))], claims: [waits(small)] }).yielding).toEqual([]);
});

it("a deficit grows for whoever waits with fewer workers, and is gone for whoever waits for nothing", () => {
  const held = [has(big), has(big), has(other)];
  const deficits = new Map([
    ["0 a", 0],
    ["0 b", 0],
    ["0 a big", 0],
    ["0 b other", 0],
  ]);
  const both = decide({ held, claims: [waits(big), waits(other)], deficits, seconds: 5 });
  expect([both.deficits.get("0 a"), both.deficits.get("0 b")]).toEqual([0, 5]);
  const one = decide({ held, claims: [waits(big)], deficits: both.deficits, seconds: 5 });
  expect(one.deficits.get("0 b")).toBe(0);
});
