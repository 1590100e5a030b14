import { describe, expect, it } from "vitest";
import {
  type Fleet,
  type PresentWorker,
  planRollout,
  splitByAge,
  wantedBefore,
} from "../../../src/apis/replicas/plan-rollout.ts";

const NONE = { ready: 0, coming: 0 };
const fleet = (given: Partial<Fleet>): Fleet => ({
  wanted: 1,
  perReplica: 1,
  fresh: NONE,
  old: NONE,
  leaving: 0,
  surge: 1,
  unavailable: 0,
  spare: 0,
  capacityLeft: 10,
  canBorrow: false,
  leavingForOne: 1,
  isBackingOff: false,
  isFailing: false,
  hasServed: true,
  ...given,
});
const ready = (count: number) => ({ ready: count, coming: 0 });

describe("a rollout", () => {
  it.each<[string, Partial<Fleet>, [start: number, retireFresh: number, retireOld: number]]>([
    ["starts missing replicas", { wanted: 3 }, [3, 0, 0]],
    ["waits for starting replicas", { wanted: 3, fresh: { ready: 1, coming: 2 } }, [0, 0, 0]],
    ["stops surplus replicas", { wanted: 1, fresh: ready(3) }, [0, 2, 0]],
    ["starts a new replica before it stops the old one", { old: ready(1) }, [1, 0, 0]],
    [
      "keeps the old replica while the new one is starting",
      { fresh: { ready: 0, coming: 1 }, old: ready(1) },
      [0, 0, 0],
    ],
    ["stops the old replica once the new one is ready", { fresh: ready(1), old: ready(1) }, [0, 0, 1]],
    [
      "starts no more new replicas than the surge",
      { wanted: 4, surge: 1, unavailable: 1, old: ready(4) },
      [1, 0, 0],
    ],
    [
      "uses surge and unavailable together",
      { wanted: 4, surge: 1, unavailable: 1, fresh: ready(1), old: ready(4) },
      [0, 0, 2],
    ],
    [
      "replaces old replicas that were still starting",
      { old: { ready: 1, coming: 2 }, fresh: { ready: 0, coming: 1 } },
      [0, 0, 2],
    ],
    [
      "replaces one replica at a time if no surge is allowed",
      { wanted: 3, surge: 0, unavailable: 1, old: ready(3) },
      [0, 0, 1],
    ],
    [
      "waits then for the capacity of the stopped replica",
      { wanted: 3, surge: 0, unavailable: 1, old: ready(2), leaving: 1 },
      [1, 0, 0],
    ],
    [
      "replaces one replica at a time on a full machine",
      { wanted: 3, old: ready(3), capacityLeft: 0 },
      [0, 0, 1],
    ],
    [
      "waits for the resources of the stopping replica",
      { wanted: 3, old: ready(2), leaving: 1, capacityLeft: 0 },
      [0, 0, 0],
    ],
    [
      "starts the new replica in the reservation of the old one",
      { wanted: 3, old: ready(2), spare: 1, capacityLeft: 0 },
      [1, 0, 0],
    ],
    [
      "stops as many replicas as it needs",
      { wanted: 4, old: ready(4), capacityLeft: 0, leavingForOne: 2 },
      [0, 0, 2],
    ],
    [
      "does not stop the only replica if only CPU is missing",
      { old: ready(1), capacityLeft: 0, canBorrow: true },
      [1, 0, 0],
    ],
    [
      "stops the only replica if the new one needs its memory or its GPU",
      { old: ready(1), capacityLeft: 0, canBorrow: false },
      [0, 0, 1],
    ],
    [
      "stops nothing for a version that would not fit even then",
      { wanted: 3, old: ready(3), capacityLeft: 0, leavingForOne: 0 },
      [0, 0, 0],
    ],
    [
      "stops nothing for a version that cannot start",
      { wanted: 3, old: ready(2), capacityLeft: 0, isFailing: true },
      [0, 0, 0],
    ],
    [
      "stops nothing until the failed replica is started again",
      { wanted: 3, old: ready(3), isBackingOff: true },
      [0, 0, 0],
    ],
    ["does not start without capacity, even with few replicas", { wanted: 1, capacityLeft: 0 }, [0, 0, 0]],
    ["does not scale up on a full machine", { wanted: 5, fresh: ready(2), capacityLeft: 0 }, [0, 0, 0]],
    ["scales up as far as the capacity allows", { wanted: 5, fresh: ready(2), capacityLeft: 1 }, [1, 0, 0]],
    ["starts no replica that it cannot complete", { wanted: 6, perReplica: 3, capacityLeft: 5 }, [3, 0, 0]],
    [
      "completes a replica after one of its processes died",
      { wanted: 6, perReplica: 3, fresh: ready(2), capacityLeft: 2 },
      [1, 0, 0],
    ],
    [
      "counts its own free reservations for the replica that it completes",
      { wanted: 3, perReplica: 3, spare: 1, capacityLeft: 3 },
      [3, 0, 0],
    ],
    [
      "replaces whole replicas of several processes",
      { wanted: 6, perReplica: 2, surge: 0, unavailable: 2, old: ready(6), leavingForOne: 2 },
      [0, 0, 2],
    ],
    ["counts starting old replicas within the surge", { wanted: 3, old: { ready: 2, coming: 1 } }, [1, 0, 1]],
    [
      "stops starting old replicas too, once enough new ones serve",
      { fresh: ready(1), old: { ready: 1, coming: 1 } },
      [0, 0, 2],
    ],
  ])("%s", (_, given, [start, retireFresh, retireOld]) => {
    expect(planRollout(fleet(given))).toMatchObject({ start, retireFresh, retireOld });
  });

  it.each<[string, Partial<Fleet>, Partial<ReturnType<typeof planRollout>>]>([
    ["waits for a replica that does not fit", { wanted: 3, capacityLeft: 1 }, { start: 1, waitFor: 2 }],
    ["does not wait for a replica that fits", { wanted: 3 }, { start: 3, waitFor: 0 }],
    [
      "does not wait for a reservation that it hands over",
      { old: ready(1), capacityLeft: 0 },
      { retireOld: 1, handsOver: true, waitFor: 0 },
    ],
    [
      "waits if the reservations of its predecessors would not be enough",
      { old: ready(1), capacityLeft: 0, leavingForOne: 0 },
      { retireOld: 0, handsOver: false, waitFor: 1 },
    ],
    [
      "borrows for the only replica if nothing is free",
      { old: ready(1), capacityLeft: 0, canBorrow: true },
      { borrows: true, waitFor: 0 },
    ],
    [
      "does not borrow capacity that is free",
      { old: ready(1), canBorrow: true },
      { borrows: false, start: 1 },
    ],
    [
      "borrows only for the only one",
      { wanted: 3, old: ready(3), capacityLeft: 0, canBorrow: true },
      { borrows: false },
    ],
    [
      "borrows for one replica only",
      { wanted: 4, perReplica: 2, surge: 2, old: ready(2), capacityLeft: 0, canBorrow: true },
      { borrows: true, start: 2 },
    ],
    [
      "borrows nothing while it may not start another",
      { surge: 0, old: ready(1), canBorrow: true },
      { borrows: false, start: 0 },
    ],
    [
      "borrows nothing beside a new replica",
      { wanted: 2, fresh: ready(1), old: ready(1), capacityLeft: 0, canBorrow: true },
      { borrows: false, start: 0 },
    ],
    [
      "borrows nothing if there is no old replica",
      { capacityLeft: 0, canBorrow: true },
      { borrows: false, start: 0, waitFor: 1 },
    ],
    [
      "does not wait for the reservations of stopping replicas",
      { wanted: 3, old: ready(2), leaving: 1, capacityLeft: 0 },
      { start: 0, waitFor: 1 },
    ],
    [
      "keeps no more reservations than it needs until it starts again",
      { wanted: 2, fresh: ready(1), spare: 3, isBackingOff: true },
      { keep: 1, start: 0 },
    ],
    [
      "keeps no more reservations than it has",
      { wanted: 3, spare: 1, isBackingOff: true },
      { keep: 1, start: 0 },
    ],
    [
      "keeps the reservation of a dead replica meanwhile",
      { fresh: NONE, spare: 1, isBackingOff: true, isFailing: true },
      { keep: 1, start: 0, waitFor: 0 },
    ],
    [
      "releases the reservation of a replica that never served",
      { fresh: NONE, spare: 1, isBackingOff: true, isFailing: true, hasServed: false },
      { keep: 0, waitFor: 0 },
    ],
    ["keeps no reservation that it does not need", { fresh: ready(1), spare: 1 }, { keep: 0, start: 0 }],
  ])("%s", (_, given, plan) => {
    expect(planRollout(fleet(given))).toMatchObject(plan);
  });

  it("ends with the newest version only, and never has fewer serving replicas than allowed", () => {
    for (let seed = 1; seed < 400; seed++) {
      const wanted = 1 + (seed % 6);
      const surge = seed % 3;
      const unavailable = surge === 0 ? 1 : (seed >> 2) % 2;
      let [fresh, old, coming, leaving] = [0, wanted, 0, 0];
      for (let step = 0; fresh < wanted || old > 0; step++) {
        expect(step, `seed ${seed}`).toBeLessThan(100);
        const plan = planRollout(
          fleet({ wanted, surge, unavailable, fresh: { ready: fresh, coming }, old: ready(old), leaving }),
        );
        old -= plan.retireOld;
        expect(fresh + old).toBeGreaterThanOrEqual(wanted - Math.max(unavailable, surge === 0 ? 1 : 0));
        expect(fresh + coming + plan.start + old).toBeLessThanOrEqual(wanted + surge);
        // Replicas that the previous step started are ready now.
        [fresh, coming, leaving] = [fresh + coming, plan.start, plan.retireOld];
      }
    }
  });
});

describe("workers", () => {
  const worker = (wear: PresentWorker["wear"], predictor_id = "new", state = "ready"): PresentWorker => ({
    predictor_id,
    state,
    wear,
  });
  const split = (present: PresentWorker[], wanted: number, leaving: number) => {
    const { fresh, old, wearing } = splitByAge(present, { predictorId: "new", wanted, leaving });
    return [fresh.length, old.length, wearing];
  };

  it.each<[string, PresentWorker[], number, number, [fresh: number, old: number, wearing: number]]>([
    ["of an earlier version are replaced, however many drain", [worker("fresh", "old")], 1, 5, [0, 1, 0]],
    ["that are worn are replaced", [worker("worn"), worker("fresh")], 2, 0, [1, 1, 0]],
    ["that are wearing get successors early", [worker("wearing"), worker("wearing")], 2, 0, [2, 0, 2]],
    ["that are wearing and start get none", [worker("wearing", "new", "initializing")], 1, 0, [1, 0, 0]],
    ["that are worn stay while as many drain as should serve", [worker("worn")], 1, 1, [1, 0, 0]],
    ["that are wearing get no successor then", [worker("wearing")], 1, 1, [1, 0, 0]],
    [
      "are replaced up to that number",
      [worker("worn"), worker("worn"), worker("wearing"), worker("fresh")],
      4,
      3,
      [3, 1, 0],
    ],
    ["of an API that should have none are not replaced", [worker("worn")], 0, 0, [1, 0, 0]],
  ])("%s", (_, present, wanted, leaving, expected) => {
    expect(split(present, wanted, leaving)).toEqual(expected);
  });
});

it.each([
  ["no rollout", [4, 0, 1], 4],
  ["a rollout that has just begun", [1, 4, 1], 4],
  ["the middle of one, with its surge", [2, 3, 1], 4],
  ["its end", [4, 1, 1], 4],
  ["one that starts all replicas at once", [4, 4, 4], 4],
  ["one without surge", [2, 2, 0], 4],
  ["none left", [0, 0, 1], 0],
] as const)(
  "after a restart in %s as many replicas are wanted as before",
  (_, [fresh, old, surge], wanted) => {
    expect(wantedBefore(fresh, old, surge)).toBe(wanted);
  },
);
