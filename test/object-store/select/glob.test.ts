import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileGlob } from "../../../src/object-store/select/glob.ts";
import { seeded } from "../../harness/random.ts";

describe("a glob pattern", () => {
  it.each<[string, string, boolean]>([
    ["*.jpg", "s3://b/a.jpg", false],
    ["**.jpg", "s3://b/a.jpg", true],
    ["**.jpg", "s3://b/a.jpeg", false],
    ["**_3.jpg", "s3://b/x/img_3.jpg", true],
    ["**_3.jpg", "s3://b/x/img_13.jpg", false],
    ["**/img_?.{png,jpg}", "s3://b/x/img_1.png", true],
    ["**/img_?.{png,jpg}", "s3://b/x/img_12.png", false],
    ["s3://b/*/a", "s3://b/x/a", true],
    ["s3://b/*/a", "s3://b/x/y/a", false],
    ["s3://b/**/a", "s3://b/x/y/a", true],
    ["s3://b/**/a", "s3://b/a", false],
    ["s3://b/?", "s3://b//", false],
    ["**[abc]", "xb", true],
    ["**[a-c]", "xd", false],
    ["**[!a-c]", "xd", true],
    ["**x[!a]y", "x/y", false],
    ["**.JPG", "a.jpg", false],
    ["a\\*b", "a*b", true],
    ["a\\*b", "axb", false],
    ["{a,b{c,d}}e", "bde", true],
    ["{a,b{c,d}}e", "be", false],
    ["{,x}y", "y", true],
    ["a,b}", "a,b}", true],
    ["***", "a/b", true],
    ["[a-]", "-", true],
    ["**?", "x/😀", true],
    ["x/?", "x/😀", true],
    ["**é.jpg", "file:///d/é.jpg", true],
  ])("%s on %s: %s", (pattern, path, expected) => {
    expect(compileGlob(pattern).matches(path)).toBe(expected);
  });

  it.each([
    ["[ab", "never closed"],
    ["{a,b", "never closed"],
    ["a\\", "ends in \\"],
    ["[]", "no character"],
    ["[!]", "no character"],
    ["[z-a]", "write a-z"],
    ["", "empty"],
    ["x".repeat(1025), "at most 1024"],
  ])("%.20s is refused", (pattern, words) => {
    expect(() => compileGlob(pattern)).toThrow(words);
  });

  it("matches the same paths as a simple backtracking matcher", () => {
    const part = fc.oneof(
      fc.constantFrom(
        "*",
        "**",
        "?",
        "a",
        "b",
        "/",
        "[ab]",
        "[!a]",
        "{a,b/}",
        "{*,b}",
        "\\*",
        "{a{b,/},**a}",
      ),
    );
    const pattern = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));
    const path = fc
      .array(fc.constantFrom("a", "b", "/", "*"), { maxLength: 8 })
      .map((codes) => codes.join(""));
    fc.assert(
      fc.property(pattern, path, (glob, text) => {
        // A `**` becomes one symbol first, so that expanded braces never make one from two `*`.
        const plain = expand(glob.replace(/\\.|\*{2,}/g, (found) => (found[0] === "*" ? "~" : found)));
        const expected = plain.some((one) => backtrack(one, text));
        expect(compileGlob(glob).matches(text)).toBe(expected);
        expect(compileGlob(glob, 0).matches(text), "without keeping states").toBe(expected);
      }),
      { numRuns: 20_000 },
    );
  });

  it("keeps only so many sets of states, however many paths differ", () => {
    const random = seeded(7);
    const glob = compileGlob("**a??????????z", 8);
    const path = () => Array.from({ length: 60 }, () => (random() < 0.5 ? "a" : "b")).join("");
    for (let count = 0; count < 2_000; count++) glob.matches(path());
    type Node = { next: (Node | undefined)[] };
    const kept = new Set([(glob as unknown as { start: Node }).start]);
    for (const { next } of kept) for (const node of next) if (node !== undefined) kept.add(node);
    expect(kept.size).toBeLessThanOrEqual(9);
  });

  it("matches long paths with the same result, without keeping every set of states", () => {
    const glob = compileGlob(`**a${"[ab]".repeat(12)}`);
    const random = seeded(7);
    for (let n = 0; n < 300; n++) {
      const path = Array.from({ length: 40 + n }, () => (random() < 0.5 ? "a" : "b")).join("");
      expect(glob.matches(path), path).toBe(/a[ab]{12}$/.test(path));
    }
  });

  it("takes time proportional to pattern times path, for any pattern", () => {
    const glob = compileGlob(`${"{*a,**a,a}".repeat(40)}b`);
    expect(glob.matches("a".repeat(5000))).toBe(false);
  });

  it("matches the same paths if it keeps no states, also by patterns of hundreds of steps", () => {
    const random = seeded(11);
    const pick = (from: readonly string[]) => from[Math.floor(random() * from.length)]!;
    const parts = ["**", "*", "?", "a", "[!b]", "{,?}", "{*,a{b,/}}", "{*}", "{**,{,a}}", "é", "[a-é]"];
    const text = (from: readonly string[], count: number) =>
      Array.from({ length: count }, () => pick(from)).join("");
    const wrong: string[] = [];
    for (let n = 0; n < 100; n++) {
      const pattern = `**${text([pick(parts), pick(parts), pick(parts)], 100)}`;
      const path = text(["a", "a", "b", "/", "é", "😀"], 60 + n);
      const [kept, walked] = [compileGlob(pattern, 10_000), compileGlob(pattern, 0)];
      for (let end = 0; end < path.length; end += 20) kept.matches(path.slice(0, end));
      if (kept.matches(path) !== walked.matches(path)) wrong.push(`${pattern} on ${path}`);
    }
    expect(wrong).toEqual([]);
  });

  it.each(["**a", "**?*", "**[!b]"])("takes milliseconds for 1,024 characters of %s", (part) => {
    const random = seeded(3);
    const path = `file:///${Array.from({ length: 4_088 }, () => (random() < 0.5 ? "a" : "b")).join("")}`;
    const plain = fastestMs("**.jpg", path, 300);
    const long = `**${part.repeat(1_000 / part.length)}`;
    // 20 to 50 times as long; 4,000 to 14,000 times before 32 steps were walked at a time.
    expect(fastestMs(long, path, 10) / plain).toBeLessThan(1_000);
  });
});

/** How long a match takes that nothing interrupts. */
function fastestMs(pattern: string, path: string, times: number): number {
  const glob = compileGlob(pattern, 8);
  let fastest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < times; n++) {
    const begin = performance.now();
    glob.matches(path);
    fastest = Math.min(fastest, performance.now() - begin);
  }
  return fastest;
}

/** Braces multiplied out. */
function expand(pattern: string): string[] {
  const open = pattern.search(/(?<!\\)\{/);
  if (open < 0) return [pattern];
  let depth = 0;
  const cuts = [open];
  for (let at = open; ; at++) {
    if (pattern[at] === "{") depth++;
    if (pattern[at] === "}") depth--;
    if ((pattern[at] === "," && depth === 1) || depth === 0) cuts.push(at);
    if (depth === 0) break;
  }
  return cuts
    .slice(1)
    .flatMap((cut, i) =>
      expand(pattern.slice(0, open) + pattern.slice(cuts[i]! + 1, cut) + pattern.slice(cuts.at(-1)! + 1)),
    );
}

function backtrack(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (pattern[0] === "*" || pattern[0] === "~") {
    for (let taken = 0; ; taken++) {
      if (backtrack(pattern.slice(1), text.slice(taken))) return true;
      if (taken === text.length || (pattern[0] === "*" && text[taken] === "/")) return false;
    }
  }
  if (text === "") return false;
  if (pattern[0] === "?") return text[0] !== "/" && backtrack(pattern.slice(1), text.slice(1));
  if (pattern[0] === "\\") return text[0] === pattern[1] && backtrack(pattern.slice(2), text.slice(1));
  if (pattern[0] === "[") {
    const close = pattern.indexOf("]");
    const isIn =
      pattern[1] === "!"
        ? !pattern.slice(2, close).includes(text[0]!)
        : pattern.slice(1, close).includes(text[0]!);
    return isIn && text[0] !== "/" && backtrack(pattern.slice(close + 1), text.slice(1));
  }
  return pattern[0] === text[0] && backtrack(pattern.slice(1), text.slice(1));
}
