/** Which lines differ between two texts. */
import { describe, expect, it } from "vitest";
import { lineDiff } from "../../src/apis/projects/line-diff.ts";
import { seeded } from "../harness/random.ts";

const text = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");

/** The longest lines that both have, by the plain method. */
function common(a: readonly string[], b: readonly string[]): number {
  const best = Array.from({ length: a.length + 1 }, () => Array<number>(b.length + 1).fill(0));
  for (let x = 1; x <= a.length; x++)
    for (let y = 1; y <= b.length; y++)
      best[x]![y] =
        a[x - 1] === b[y - 1] ? best[x - 1]![y - 1]! + 1 : Math.max(best[x - 1]![y]!, best[x]![y - 1]!);
  return best[a.length]![b.length]!;
}

describe("the lines that differ", () => {
  it("are shown with two lines before and after, in parts", () => {
    const before = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    const after = ["a", "b", "X", "d", "e", "f", "g", "h", "i", "j"];
    expect(lineDiff(text(before), text(after))).toEqual({
      ...{ added: 2, removed: 1 },
      text: "@@ line 1 @@\n a\n b\n-c\n+X\n d\n e\n@@ line 8 @@\n h\n i\n+j",
    });
    expect(lineDiff("", text(["a"]))).toEqual({ added: 1, removed: 0, text: "@@ line 1 @@\n+a" });
    expect(lineDiff("a\n", "a")).toEqual({ added: 0, removed: 0, text: "" });
  });

  it("are the fewest, in any texts", () => {
    const random = seeded(7);
    const lines = () =>
      Array.from({ length: Math.floor(random() * 12) }, () => "abc"[Math.floor(random() * 3)]!);
    for (let time = 0; time < 2_000; time++) {
      const [before, after] = [lines(), lines()];
      const same = common(before, after);
      const { added, removed } = lineDiff(text(before), text(after));
      expect([added, removed]).toEqual([after.length - same, before.length - same]);
    }
  });

  it("are all between the first and the last difference if they are very many, within moments", () => {
    const lines = (of: number) => Array.from({ length: 5_000 }, (_, at) => `${at % of}`);
    const start = performance.now();
    const { added, removed } = lineDiff(text(["same", ...lines(97)]), text(["same", ...lines(89)]));
    expect(performance.now() - start).toBeLessThan(2_000);
    expect([added, removed]).toEqual([added, added]);
    expect(added).toBeGreaterThan(4_000);
    expect(added).toBeLessThanOrEqual(5_000);
  });
});
