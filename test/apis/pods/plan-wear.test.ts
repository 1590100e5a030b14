/** How worn pods are replaced. */
import { expect, it } from "vitest";
import { planWear, type WearingPods, type WearPlan } from "../../../src/apis/pods/plan-wear.ts";

const ONE: WearingPods = { wanted: 1, serving: 1, wearing: 0, worn: 0, leaving: 0 };

it.each<[string, Partial<WearingPods>, WearPlan]>([
  ["none is worn", {}, { extra: 0, retire: 0 }],
  ["one will soon be worn: its successor starts", { wearing: 1 }, { extra: 1, retire: 0 }],
  ["one is worn: its successor starts, and it serves on", { worn: 1 }, { extra: 1, retire: 0 }],
  ["its successor serves: it goes", { worn: 1, serving: 2 }, { extra: 0, retire: 1 }],
  ["its successor serves before it is worn", { wearing: 1, serving: 2 }, { extra: 1, retire: 0 }],
  ["its successor is worn too", { worn: 2, serving: 2 }, { extra: 0, retire: 1 }],
  ["streams keep its predecessor", { worn: 1, leaving: 1 }, { extra: 0, retire: 0 }],
  ["three are: one successor starts", { wanted: 3, worn: 3, serving: 3 }, { extra: 1, retire: 0 }],
  ["three are, and one successor serves", { wanted: 3, worn: 3, serving: 4 }, { extra: 0, retire: 1 }],
  ["three are, and two others serve", { wanted: 3, worn: 3, serving: 5 }, { extra: 0, retire: 2 }],
  ["fewer are wanted: worn ones go first", { wanted: 2, worn: 1, serving: 3 }, { extra: 0, retire: 1 }],
  ["none is wanted", { wanted: 0, worn: 1 }, { extra: 0, retire: 0 }],
])("%s", (_, pods, expected) => {
  expect(planWear({ ...ONE, ...pods })).toEqual(expected);
});
