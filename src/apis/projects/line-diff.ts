/**
 * Which lines differ between two texts, as a unified diff. Pure. Its work is bounded: of texts that differ very much, all
 * lines between the first and the last difference count as removed and added.
 */
import { DIFF_STEPS_MAX } from "../../contracts/limits/projects.ts";

export interface LineDiff {
  added: number;
  removed: number;
  /** Lines with ` `, `-` or `+` before them, in parts that each begin with `@@`. */
  text: string;
}

/** Unchanged lines before and after each change. */
const CONTEXT = 2;

interface Edit {
  sign: " " | "-" | "+";
  line: string;
  /** The number of the line in the text after, or of the one that follows. */
  at: number;
}

export function lineDiff(before: string, after: string): LineDiff {
  const edits = editsOf(linesOf(before), linesOf(after));
  const count = (sign: Edit["sign"]) => edits.filter((edit) => edit.sign === sign).length;
  return { added: count("+"), removed: count("-"), text: unified(edits) };
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  // The end of the last line.
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function editsOf(before: readonly string[], after: readonly string[]): Edit[] {
  let first = 0;
  const shorter = Math.min(before.length, after.length);
  while (first < shorter && before[first] === after[first]) first++;
  let same = 0;
  while (same < shorter - first && before.at(-1 - same) === after.at(-1 - same)) same++;
  const [old, now] = [before.slice(first, before.length - same), after.slice(first, after.length - same)];
  const signs = [
    ...Array.from({ length: first }, () => " " as const),
    ...(shortest(old, now) ?? [...old.map(() => "-" as const), ...now.map(() => "+" as const)]),
    ...Array.from({ length: same }, () => " " as const),
  ];
  let [left, right] = [0, 0];
  return signs.map((sign) => {
    const line = sign === "-" ? before[left]! : after[right]!;
    const edit = { sign, line, at: right + 1 };
    if (sign !== "+") left++;
    if (sign !== "-") right++;
    return edit;
  });
}

/** By diagonal (removed less added lines): how many lines of the text before a path has come past. */
type Reach = ReadonlyMap<number, number>;

/** Myers' algorithm: the fewest lines that are removed and added. Undefined if they are more than `DIFF_STEPS_MAX`. */
function shortest(before: readonly string[], after: readonly string[]): Edit["sign"][] | undefined {
  const [rows, columns] = [before.length, after.length];
  /** What the paths with fewer edits reach, by the number of edits. */
  const trace: Reach[] = [];
  const reach = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(rows + columns, DIFF_STEPS_MAX); edits++) {
    trace.push(new Map(reach));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const from = cameFrom(reach, diagonal, edits);
      let x = reach.get(from)! + (from < diagonal ? 1 : 0);
      while (x < rows && x - diagonal < columns && before[x] === after[x - diagonal]) x++;
      reach.set(diagonal, x);
      if (x >= rows && x - diagonal >= columns) return signsOf(trace, rows, columns);
    }
  }
  return undefined;
}

/** The diagonal of the path that reaches further: the one above with a line added, or the one below with one removed. */
function cameFrom(reach: Reach, diagonal: number, edits: number): number {
  const isAdded =
    diagonal === -edits || (diagonal !== edits && reach.get(diagonal - 1)! < reach.get(diagonal + 1)!);
  return isAdded ? diagonal + 1 : diagonal - 1;
}

/** Follows the path back from its end. */
function signsOf(trace: readonly Reach[], rows: number, columns: number): Edit["sign"][] {
  const signs: Edit["sign"][] = [];
  let [x, y] = [rows, columns];
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const reach = trace[edits]!;
    const from = cameFrom(reach, x - y, edits);
    const [formerX, formerY] = [reach.get(from)!, reach.get(from)! - from];
    const isAdded = from > x - y;
    for (; x > formerX && y > formerY; x--, y--) signs.push(" ");
    signs.push(isAdded ? "+" : "-");
    [x, y] = [formerX, formerY];
  }
  for (; x > 0; x--) signs.push(" ");
  return signs.reverse();
}

function unified(edits: readonly Edit[]): string {
  const near = new Set<number>();
  for (const [at, { sign }] of edits.entries())
    if (sign !== " ") for (let of = at - CONTEXT; of <= at + CONTEXT; of++) near.add(of);
  const lines: string[] = [];
  for (const [at, { sign, line, at: number }] of edits.entries()) {
    if (!near.has(at)) continue;
    if (at === 0 || !near.has(at - 1)) lines.push(`@@ line ${number} @@`);
    lines.push(sign + line);
  }
  return lines.join("\n");
}
