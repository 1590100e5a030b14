/** Detects repeated signatures: they are remembered while their date is accepted, in bounded memory. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { UsedSignatures } from "../../src/access/used-signatures.ts";

const T = Date.parse("2026-01-31T12:00:00Z");
const MINUTE = 60_000;
const newSignature = (dateMs = T, accessKeyId = "A") => ({
  ...{ accessKeyId, dateMs },
  signature: randomBytes(32).toString("hex"),
});

describe("used signatures", () => {
  it("are recognized until their date is no longer accepted, even with skewed clocks", () => {
    const used = new UsedSignatures(1);
    for (const skew of [-14 * MINUTE, 0, 14 * MINUTE]) {
      const one = newSignature(T + skew);
      expect(used.use(one, T)).toBe("new");
      expect(used.use(one, T + 1_000)).toBe("repeated");
      expect(used.use(one, T + 6_000)).toBe("used");
      expect(used.use(one, T + skew + 15 * MINUTE)).toBe("used");
    }
  });

  it("of one key do not affect those of another", () => {
    const used = new UsedSignatures(2);
    const one = newSignature();
    expect(used.use(one, T)).toBe("new");
    expect(used.use({ ...one, accessKeyId: "B" }, T)).toBe("new");
  });

  it("are forgotten and no longer accepted after their window, even if the clock is set back", () => {
    const used = new UsedSignatures(1);
    const one = newSignature();
    used.use(one, T);
    used.use(newSignature(T + 31 * MINUTE), T + 31 * MINUTE);
    expect(used.size).toBe(1);
    expect(used.use(one, T)).toBe("too_old");
  });

  it("of a key that signs too much are bounded: the oldest are refused, and no repeat is accepted", () => {
    const used = new UsedSignatures(2, 2_000);
    const all = Array.from({ length: 3_000 }, (_, i) => newSignature(T + Math.floor(i / 10) * 1_000));
    for (const one of all) expect(used.use(one, one.dateMs)).toBe("new");
    expect(used.size).toBeLessThanOrEqual(1_000);
    const verdicts = all.map((one) => used.use(one, T + 5 * MINUTE + 10_000));
    expect(verdicts).not.toContain("new");
    expect(verdicts.slice(0, 1_900)).toEqual(Array.from({ length: 1_900 }, () => "too_old"));
    expect(used.use(newSignature(T, "B"), T + 5 * MINUTE)).toBe("new");
  });

  it("are bounded too if all have the same second", () => {
    const used = new UsedSignatures(1, 100);
    const verdicts = Array.from({ length: 300 }, () => used.use(newSignature(), T));
    expect(verdicts.slice(0, 100)).not.toContain("too_old");
    expect(verdicts.slice(100)).not.toContain("new");
    expect(used.size).toBeLessThanOrEqual(100);
  });
});
