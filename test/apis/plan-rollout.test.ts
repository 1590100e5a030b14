import { describe, expect, it } from "vitest";
import { type Fleet, planRollout } from "../../src/apis/plan-rollout.ts";

const NONE = { ready: 0, coming: 0 };
const fleet = (given: Partial<Fleet>): Fleet => ({
  wanted: 1,
  perReplica: 1,
  fresh: NONE,
  old: NONE,
  leaving: 0,
  surge: 1,
  unavailable: 0,
  room: 10,
  atAnyRate: 1,
  isFailing: false,
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
      "waits for its room then",
      { wanted: 3, surge: 0, unavailable: 1, old: ready(2), leaving: 1 },
      [1, 0, 0],
    ],
    [
      "replaces one at a time on a full machine",
      { wanted: 3, old: ready(3), room: 0, atAnyRate: 3 },
      [0, 0, 1],
    ],
    [
      "starts its successor though the machine is full",
      { wanted: 3, old: ready(2), leaving: 1, room: 0, atAnyRate: 3 },
      [1, 0, 0],
    ],
    ["does not take the only one down for want of CPU", { old: ready(1), room: 0 }, [1, 0, 0]],
    ["takes the only one down where its GPU is needed", { old: ready(1), room: 0, atAnyRate: 0 }, [0, 0, 1]],
    [
      "takes nothing down for a version that cannot start",
      { wanted: 3, old: ready(2), room: 0, atAnyRate: 0, isFailing: true },
      [0, 0, 0],
    ],
    ["does not grow on a full machine", { wanted: 5, fresh: ready(2), room: 0, atAnyRate: 1 }, [0, 0, 0]],
    ["grows as far as there is room", { wanted: 5, fresh: ready(2), room: 1, atAnyRate: 1 }, [1, 0, 0]],
    [
      "replaces whole replicas of several processes",
      { wanted: 6, perReplica: 2, surge: 0, unavailable: 2, old: ready(6) },
      [0, 0, 2],
    ],
  ])("%s", (_, given, [start, retireFresh, retireOld]) => {
    expect(planRollout(fleet(given))).toEqual({ start, retireFresh, retireOld });
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
