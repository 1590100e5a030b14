/** An answer that is computed once for all who wait for it. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CoalescedAnswer } from "../../../src/control/answers/coalesced-answer.ts";

const TAKES_MS = 20;

describe("an answer for all who ask", () => {
  let begun: number;
  let answer: CoalescedAnswer<number>;

  beforeEach(() => {
    vi.useFakeTimers();
    begun = 0;
    answer = new CoalescedAnswer(async () => {
      const number = ++begun;
      await new Promise((resolve) => setTimeout(resolve, TAKES_MS));
      if (number === 2) throw new Error("the second one fails");
      return number;
    });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("is computed once for those that wait", async () => {
    const asked = [answer.ask(), answer.ask(), answer.ask()];
    await vi.advanceTimersByTimeAsync(TAKES_MS);
    expect(await Promise.all(asked)).toEqual([1, 1, 1]);
  });

  test("is computed again for those that ask after it has begun: they may know of something newer", async () => {
    const first = answer.ask();
    await vi.advanceTimersByTimeAsync(1);
    const later = [answer.ask(), answer.ask()];
    const outcomes = Promise.allSettled(later);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await first).toBe(1);
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(begun).toBe(2);
  });

  test("rests three times as long as it took, also after a failure", async () => {
    const asking = answer.ask();
    await vi.advanceTimersByTimeAsync(TAKES_MS);
    await asking;
    const second = answer.ask().catch(() => "failed");
    await vi.advanceTimersByTimeAsync(3 * TAKES_MS - 1);
    expect(begun).toBe(1);
    await vi.advanceTimersByTimeAsync(1 + TAKES_MS);
    expect(await second).toBe("failed");
    const third = answer.ask();
    await vi.advanceTimersByTimeAsync(3 * TAKES_MS - 1);
    expect(begun).toBe(2);
    await vi.advanceTimersByTimeAsync(1 + TAKES_MS);
    expect(await third).toBe(3);
  });
});
