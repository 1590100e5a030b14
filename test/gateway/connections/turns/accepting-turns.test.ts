/** When a gateway only accepts connections, and for how long. */
import { beforeEach, describe, expect, it } from "vitest";
import { ACCEPTING_MS, DEALT_PATIENCE_MS } from "../../../../src/contracts/limits/requests.ts";
import { AcceptingTurns } from "../../../../src/gateway/connections/turns/accepting-turns.ts";

describe("turns that only accept", () => {
  let next: (() => void)[];
  let nowMs: number;
  let turns: AcceptingTurns;

  beforeEach(() => {
    [next, nowMs] = [[], 1_000];
    turns = new AcceptingTurns(
      (begin) => next.push(begin),
      () => nowMs,
    );
  });
  function nextTurn(): void {
    for (const begin of next.splice(0)) begin();
  }
  /** Turns of a millisecond that are due, up to so many, each of which accepts a connection. */
  function accept(most: number): number {
    for (let count = 0; count < most; count++) {
      turns.accepted();
      nextTurn();
      if (!turns.areDue()) return count;
      nowMs += 1;
    }
    return most;
  }

  it("are not due while none comes", () => {
    expect(turns.areDue()).toBe(false);
    expect(next).toHaveLength(0);
  });

  it("are due for as long as connections come, up to their share", () => {
    expect(accept(5)).toBe(5);
    expect(turns.areDue()).toBe(true);
    // The last turn accepted none.
    nextTurn();
    expect(turns.areDue()).toBe(false);
    nowMs += ACCEPTING_MS;
    expect(accept(1_000)).toBe(ACCEPTING_MS);
  });

  it("are due again only after as much time for the work", () => {
    accept(1_000);
    nowMs += ACCEPTING_MS - 1;
    expect(turns.areDue()).toBe(false);
    nowMs += 1;
    expect(turns.areDue()).toBe(true);
  });

  it("wait for nothing after a single connection that is dealt", () => {
    turns.areDealt();
    turns.accepted();
    expect(turns.areDue()).toBe(true);
    nextTurn();
    expect(turns.areDue()).toBe(false);
  });

  it("wait a moment for the next connection that is dealt, after several", () => {
    turns.areDealt();
    turns.accepted();
    expect(turns.areDue()).toBe(true);
    turns.accepted();
    nextTurn();
    nowMs += DEALT_PATIENCE_MS / 2;
    nextTurn();
    expect(turns.areDue()).toBe(true);
    nowMs += DEALT_PATIENCE_MS;
    nextTurn();
    expect(turns.areDue()).toBe(false);
  });

  it("are due for all who ask in a turn", () => {
    turns.accepted();
    expect([turns.areDue(), turns.areDue()]).toEqual([true, true]);
    expect(next).toHaveLength(1);
  });
});
