import { describe, expect, it } from "vitest";
import { type Fleet, planRollout } from "../../../src/apis/replicas/plan-rollout.ts";

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
    ["starts what is missing", { wanted: 3 }, [3, 0, 0]],
    ["waits for what is coming", { wanted: 3, fresh: { ready: 1, coming: 2 } }, [0, 0, 0]],
    ["takes away what is too much", { wanted: 1, fresh: ready(3) }, [0, 2, 0]],
    ["has a new one ready before the old one goes", { old: ready(1) }, [1, 0, 0]],
    [
      "keeps the old one while the new one is coming",
      { fresh: { ready: 0, coming: 1 }, old: ready(1) },
      [0, 0, 0],
    ],
    ["lets the old one go then", { fresh: ready(1), old: ready(1) }, [0, 0, 1]],
    ["starts no more than the surge", { wanted: 4, surge: 1, unavailable: 1, old: ready(4) }, [1, 0, 0]],
    [
      "goes on by surge and unavailable together",
      { wanted: 4, surge: 1, unavailable: 1, fresh: ready(1), old: ready(4) },
      [0, 0, 2],
    ],
    [
      "replaces those that were on their way",
      { old: { ready: 1, coming: 2 }, fresh: { ready: 0, coming: 1 } },
      [0, 0, 2],
    ],
    [
      "replaces one at a time where no surge is allowed",
      { wanted: 3, surge: 0, unavailable: 1, old: ready(3) },
      [0, 0, 1],
    ],
    [
      "waits for its capacity then",
      { wanted: 3, surge: 0, unavailable: 1, old: ready(2), leaving: 1 },
      [1, 0, 0],
    ],
    ["replaces one at a time on a full machine", { wanted: 3, old: ready(3), capacityLeft: 0 }, [0, 0, 1]],
    [
      "waits for the place of the one that makes capacity",
      { wanted: 3, old: ready(2), leaving: 1, capacityLeft: 0 },
      [0, 0, 0],
    ],
    ["starts its successor in its place", { wanted: 3, old: ready(2), spare: 1, capacityLeft: 0 }, [1, 0, 0]],
    [
      "takes as many down as its successor needs",
      { wanted: 4, old: ready(4), capacityLeft: 0, leavingForOne: 2 },
      [0, 0, 2],
    ],
    [
      "does not take the only one down for want of CPU",
      { old: ready(1), capacityLeft: 0, canBorrow: true },
      [1, 0, 0],
    ],
    [
      "takes the only one down where its memory or its GPU is needed",
      { old: ready(1), capacityLeft: 0, canBorrow: false },
      [0, 0, 1],
    ],
    [
      "takes nothing down for a version that would not fit then either",
      { wanted: 3, old: ready(3), capacityLeft: 0, leavingForOne: 0 },
      [0, 0, 0],
    ],
    [
      "takes nothing down for a version that cannot start",
      { wanted: 3, old: ready(2), capacityLeft: 0, isFailing: true },
      [0, 0, 0],
    ],
    [
      "takes nothing down while what failed is not tried again",
      { wanted: 3, old: ready(3), isBackingOff: true },
      [0, 0, 0],
    ],
    ["does not start without capacity, however few there are", { wanted: 1, capacityLeft: 0 }, [0, 0, 0]],
    ["does not grow on a full machine", { wanted: 5, fresh: ready(2), capacityLeft: 0 }, [0, 0, 0]],
    ["grows as far as there is capacity", { wanted: 5, fresh: ready(2), capacityLeft: 1 }, [1, 0, 0]],
    ["begins no replica that cannot be completed", { wanted: 6, perReplica: 3, capacityLeft: 5 }, [3, 0, 0]],
    [
      "completes a replica of which a process died",
      { wanted: 6, perReplica: 3, fresh: ready(2), capacityLeft: 2 },
      [1, 0, 0],
    ],
    [
      "counts the free places of its own with what it completes",
      { wanted: 3, perReplica: 3, spare: 1, capacityLeft: 3 },
      [3, 0, 0],
    ],
    [
      "replaces whole replicas of several processes",
      { wanted: 6, perReplica: 2, surge: 0, unavailable: 2, old: ready(6), leavingForOne: 2 },
      [0, 0, 2],
    ],
    ["counts old ones on their way within the surge", { wanted: 3, old: { ready: 2, coming: 1 } }, [1, 0, 1]],
    [
      "lets go of old ones on their way too, once enough new ones serve",
      { fresh: ready(1), old: { ready: 1, coming: 1 } },
      [0, 0, 2],
    ],
  ])("%s", (_, given, [start, retireFresh, retireOld]) => {
    expect(planRollout(fleet(given))).toMatchObject({ start, retireFresh, retireOld });
  });

  it.each<[string, Partial<Fleet>, Partial<ReturnType<typeof planRollout>>]>([
    ["waits for what does not fit", { wanted: 3, capacityLeft: 1 }, { start: 1, waitFor: 2 }],
    ["waits for nothing that fits", { wanted: 3 }, { start: 3, waitFor: 0 }],
    [
      "does not wait for a place that it hands over",
      { old: ready(1), capacityLeft: 0 },
      { retireOld: 1, handsOver: true, waitFor: 0 },
    ],
    [
      "waits where its predecessors' places would not be enough",
      { old: ready(1), capacityLeft: 0, leavingForOne: 0 },
      { retireOld: 0, handsOver: false, waitFor: 1 },
    ],
    [
      "borrows for the only one, where nothing is free",
      { old: ready(1), capacityLeft: 0, canBorrow: true },
      { borrows: true, waitFor: 0 },
    ],
    ["borrows nothing that is free", { old: ready(1), canBorrow: true }, { borrows: false, start: 1 }],
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
      "borrows nothing beside a new one",
      { wanted: 2, fresh: ready(1), old: ready(1), capacityLeft: 0, canBorrow: true },
      { borrows: false, start: 0 },
    ],
    [
      "borrows nothing from nobody",
      { capacityLeft: 0, canBorrow: true },
      { borrows: false, start: 0, waitFor: 1 },
    ],
    [
      "does not wait for the places of those that leave",
      { wanted: 3, old: ready(2), leaving: 1, capacityLeft: 0 },
      { start: 0, waitFor: 1 },
    ],
    [
      "keeps no more places than it needs until it starts again",
      { wanted: 2, fresh: ready(1), spare: 3, isBackingOff: true },
      { keep: 1, start: 0 },
    ],
    ["keeps no more places than it has", { wanted: 3, spare: 1, isBackingOff: true }, { keep: 1, start: 0 }],
    [
      "keeps the place of what died until it is started again",
      { fresh: NONE, spare: 1, isBackingOff: true, isFailing: true },
      { keep: 1, start: 0, waitFor: 0 },
    ],
    [
      "gives the place of what never served to others meanwhile",
      { fresh: NONE, spare: 1, isBackingOff: true, isFailing: true, hasServed: false },
      { keep: 0, waitFor: 0 },
    ],
    ["keeps no place that it does not need", { fresh: ready(1), spare: 1 }, { keep: 0, start: 0 }],
  ])("%s", (_, given, plan) => {
    expect(planRollout(fleet(given))).toMatchObject(plan);
  });

  it("ends with the newest version alone, and never serves with fewer than it may", () => {
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
        // What was begun in the step before is there now.
        [fresh, coming, leaving] = [fresh + coming, plan.start, plan.retireOld];
      }
    }
  });
});
