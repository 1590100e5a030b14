import { expect, it } from "vitest";
import { PaceWatch, type WatchedBody } from "../../src/access/pace-watch.ts";
import { LATE_AT_ONCE_MAX } from "../../src/contracts/limits/requests.ts";

it("refuses bodies that stop arriving a few in each turn, and none that is over before its turn", () => {
  const turns: (() => void)[] = [];
  const pace = new PaceWatch((next) => turns.push(next));
  const nextTurn = () => {
    for (const turn of turns.splice(0)) turn();
  };
  const bodies: WatchedBody[] = Array.from({ length: 2 * LATE_AT_ONCE_MAX }, () => ({ bytes: 1, size: 100 }));
  const refused: WatchedBody[] = [];
  for (const body of bodies) pace.add(body, () => refused.push(body));
  pace.check();
  nextTurn();
  expect(refused).toEqual([]);
  pace.check();
  expect([refused.length, pace.size]).toEqual([0, 0]);
  nextTurn();
  expect(refused).toEqual(bodies.slice(0, LATE_AT_ONCE_MAX));
  pace.delete(bodies.at(-1)!);
  nextTurn();
  expect(refused).toEqual(bodies.slice(0, -1));
  expect(turns).toEqual([]);
});
