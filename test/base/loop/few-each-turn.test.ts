import { expect, it } from "vitest";
import { FewEachTurn } from "../../../src/base/loop/turns.ts";

it("does a few pieces in each turn, in order, also those that are added meanwhile, and one that throws ends nothing", () => {
  const turns: (() => void)[] = [];
  const few = new FewEachTurn("a piece of this test", 2, (next) => turns.push(next));
  const done: number[] = [];
  const nextTurn = () => {
    for (const turn of turns.splice(0)) turn();
    return done.splice(0);
  };
  for (let piece = 0; piece < 5; piece++)
    few.add(() => {
      done.push(piece);
      if (piece === 0) throw new Error("this test throws");
    });
  expect(done).toEqual([]);
  expect(nextTurn()).toEqual([0, 1]);
  few.add(() => {
    done.push(5);
    few.add(() => done.push(6));
  });
  expect(nextTurn()).toEqual([2, 3]);
  expect(nextTurn()).toEqual([4, 5]);
  expect(nextTurn()).toEqual([6]);
  expect(turns).toEqual([]);
});
