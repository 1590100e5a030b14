/**
 * How much time the connections of each owner have cost lately: half of it is forgotten every ten seconds. Kept as
 * logarithms of what a cost would be if all had grown instead: so costs of different times compare without being
 * computed anew. Pure.
 */
import { READING_COST_HALF_MS, READING_COSTS_MAX } from "../../../contracts/limits/requests.ts";

export class OwnerCosts {
  /** The logarithm, to base 2. */
  private readonly byOwner = new Map<string, number>();

  add(owner: string, ms: number, nowMs: number): void {
    if (ms <= 0) return;
    if (this.byOwner.size >= READING_COSTS_MAX) this.forget(nowMs);
    const added = Math.log2(ms) + nowMs / READING_COST_HALF_MS;
    this.byOwner.set(owner, sumOf(this.of(owner), added));
  }

  /** To compare with those of others only. Of an owner that has cost nothing it is minus infinity. */
  of(owner: string): number {
    return this.byOwner.get(owner) ?? Number.NEGATIVE_INFINITY;
  }

  /** Those that are worth less than a millisecond now; all, if there is none of these. */
  private forget(nowMs: number): void {
    for (const [owner, cost] of this.byOwner)
      if (cost < nowMs / READING_COST_HALF_MS) this.byOwner.delete(owner);
    if (this.byOwner.size >= READING_COSTS_MAX) this.byOwner.clear();
  }
}

/** Of two logarithms, that of the sum. */
function sumOf(a: number, b: number): number {
  const [less, more] = a < b ? [a, b] : [b, a];
  return more + Math.log2(1 + 2 ** (less - more));
}
