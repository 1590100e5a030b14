/** Works of which a few may run at once, and some never end. */
import { expect, it } from "vitest";
import { AtMost, TookTooLong } from "../../src/object-store/at-most.ts";

const NEVER = new Promise<never>(() => {});

it("runs the others in the order in which they came", async () => {
  const works = new AtMost(2, 60_000);
  const begun: number[] = [];
  let end = () => {};
  const first = works.run(() => new Promise<void>((resolve) => (end = resolve)));
  const fails = works.run(() => Promise.reject(new Error("it failed")));
  const others = [1, 2, 3].map((n) => works.run(async () => begun.push(n)));
  await expect(fails).rejects.toThrow("it failed");
  await Promise.all(others);
  expect(begun).toEqual([1, 2, 3]);
  end();
  await first;
});

it("waits for no work for ever: neither for one that hangs, nor for one behind it, which then never begins", async () => {
  const works = new AtMost(1, 50);
  const begun: string[] = [];
  let end = () => {};
  const hangs = works.run(() => new Promise<void>((resolve) => (end = resolve)));
  const behind = works.run(async () => begun.push("behind"));
  const rejected = { status: "rejected", reason: expect.any(TookTooLong) };
  expect(await Promise.allSettled([hangs, behind])).toEqual([rejected, rejected]);
  end();
  await works.run(async () => begun.push("after"));
  expect(begun).toEqual(["after"]);
  await expect(works.run(() => NEVER)).rejects.toBeInstanceOf(TookTooLong);
});
