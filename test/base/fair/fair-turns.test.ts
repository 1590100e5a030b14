import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { FairTurns } from "../../../src/base/fair/fair-turns.ts";

/** Takes turns, and notes who had one. `end` ends the current turn, and resolves once the next has begun. */
function make(mostOfSender = 10) {
  const turns = new FairTurns(mostOfSender);
  const had: string[] = [];
  const take = async (name: string, left?: AbortSignal) => {
    const turn = await turns.take(name[0]!, left);
    if (turn === "taken") had.push(name);
    return turn;
  };
  const end = async () => {
    turns.end();
    await nextTurn();
  };
  return { take, end, had };
}

it("each sender in turn is next, and its callers in order", async () => {
  const { take, end, had } = make();
  const taken = ["a1", "a2", "a3", "b1", "c1", "b2"].map((name) => take(name));
  for (let i = 0; i < 6; i++) await end();
  expect(await Promise.all(taken)).toEqual(Array(6).fill("taken"));
  expect(had).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
});

it("the turn is free again after the last one", async () => {
  const { take, end, had } = make();
  for (const name of ["a1", "b1", "a2"]) {
    expect(await take(name)).toBe("taken");
    await end();
  }
  expect(had).toEqual(["a1", "b1", "a2"]);
});

it("whoever leaves has no turn, and takes no place of its sender", async () => {
  const { take, end, had } = make(1);
  const left = new AbortController();
  const taken = [take("a1"), take("a2", left.signal)];
  expect(await take("a3")).toBe("full");
  left.abort();
  taken.push(take("a4"), take("a5", left.signal));
  await end();
  expect(await Promise.all(taken)).toEqual(["taken", "left", "taken", "left"]);
  expect(had).toEqual(["a1", "a4"]);
});
