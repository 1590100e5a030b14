/** Glob patterns: refused with a GlobError, or they match what a plain matcher of sets of positions does. */
import { compileGlob } from "../../../src/object-store/select/glob.ts";
import { GlobError } from "../../../src/object-store/select/parse-glob.ts";
import { Finding, type Target } from "../target.ts";

type Node =
  | { kind: "one"; holds: (character: string) => boolean }
  | { kind: "star"; crosses: boolean }
  | { kind: "either"; choices: Node[][] };

/** A pattern that is known to be legal. */
function parse(codes: readonly string[], at: { is: number }, isInside: boolean): Node[] {
  const nodes: Node[] = [];
  for (; at.is < codes.length; ) {
    const code = codes[at.is]!;
    if (isInside && (code === "," || code === "}")) break;
    at.is++;
    if (code === "*") {
      let stars = 1;
      for (; codes[at.is] === "*"; at.is++) stars++;
      nodes.push({ kind: "star", crosses: stars > 1 });
    } else if (code === "?") nodes.push({ kind: "one", holds: (given) => given !== "/" });
    else if (code === "[") nodes.push(parseSet(codes, at));
    else if (code === "{") nodes.push(parseChoices(codes, at));
    else {
      const wanted = code === "\\" ? codes[at.is++]! : code;
      nodes.push({ kind: "one", holds: (given) => given === wanted });
    }
  }
  return nodes;
}

function parseSet(codes: readonly string[], at: { is: number }): Node {
  const end = codes.indexOf("]", at.is);
  const isNegated = codes[at.is] === "!";
  const inside = codes.slice(at.is + (isNegated ? 1 : 0), end);
  at.is = end + 1;
  const ranges: [number, number][] = [];
  for (let i = 0; i < inside.length; ) {
    const isRange = inside[i + 1] === "-" && i + 2 < inside.length;
    ranges.push([inside[i]!.codePointAt(0)!, inside[isRange ? i + 2 : i]!.codePointAt(0)!]);
    i += isRange ? 3 : 1;
  }
  const isIn = (given: string) =>
    ranges.some(([from, to]) => given.codePointAt(0)! >= from && given.codePointAt(0)! <= to);
  return { kind: "one", holds: (given) => given !== "/" && isIn(given) !== isNegated };
}

function parseChoices(codes: readonly string[], at: { is: number }): Node {
  const choices: Node[][] = [];
  for (;;) {
    choices.push(parse(codes, at, true));
    if (codes[at.is++] === "}") return { kind: "either", choices };
  }
}

/** The positions where these nodes may end if they begin at any of `starts`. */
function ends(
  nodes: readonly Node[],
  path: readonly string[],
  starts: ReadonlySet<number>,
): ReadonlySet<number> {
  let reached = starts;
  for (const node of nodes) {
    const next = new Set<number>();
    for (const start of reached) {
      if (node.kind === "either") continue;
      if (node.kind === "one") {
        if (start < path.length && node.holds(path[start]!)) next.add(start + 1);
        continue;
      }
      for (let end = start; ; end++) {
        next.add(end);
        if (end === path.length || (path[end] === "/" && !node.crosses)) break;
      }
    }
    if (node.kind === "either")
      for (const choice of node.choices) for (const end of ends(choice, path, reached)) next.add(end);
    reached = next;
  }
  return reached;
}

export const glob: Target = {
  dictionary: [
    "*",
    "**",
    "?",
    "[",
    "]",
    "[!",
    "[a-z]",
    "{",
    "}",
    ",",
    "\\",
    "/",
    "-",
    "!",
    "a",
    "b",
    "\n",
    "é",
    "😀",
    "{a,b}",
    "{,",
    "\u0000",
    "s3://b/",
  ],
  maxBytes: 4 * 1024,
  covers: /\/src\/object-store\/select\/(parse-)?glob/,
  run(input) {
    const text = input.toString();
    const cut = text.indexOf("\n");
    const [pattern, path] = cut < 0 ? [text, "a/b"] : [text.slice(0, cut), text.slice(cut + 1)];
    try {
      const matches = compileGlob(pattern).matches(path);
      // A reference that is simple is slow.
      const short = [...path];
      if (short.length > 200) return undefined;
      const expected = ends(parse([...pattern], { is: 0 }, false), short, new Set([0])).has(short.length);
      if (matches !== expected)
        throw new Finding(`matches: ${matches}, and a plain matcher says ${expected}`);
    } catch (error) {
      if (!(error instanceof GlobError)) throw error;
    }
    return undefined;
  },
};
