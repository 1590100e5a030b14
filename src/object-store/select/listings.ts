/** Which prefixes of a selection are listed, and what earlier ones select of them. Cut into slices: there may be 100,000. */
import type { TimeSlices } from "../../base/clock.ts";

/** Strings that are sorted or merged without a look at the clock: about a millisecond. */
const AT_ONCE = 1000;

/** One entry of `store_paths` that is worth listing. */
export interface Listing {
  prefix: string;
  entry: number;
  /** Earlier prefixes that select some of what this one does, if any: sorted, and none begins with another. */
  inside: string[] | undefined;
}

/**
 * The prefixes in order, without those whose files an earlier one selects. After sorting, a prefix comes before all
 * that begin with it. So the prefixes of the current one form a stack, in which the innermost came first in the
 * submission. (A prefix that came after one that covers it is not on the stack.)
 */
export async function listingsOf(prefixes: readonly string[], slices: TimeSlices): Promise<Listing[]> {
  const entries = new Map<string, number>();
  for (const [entry, prefix] of prefixes.entries()) if (!entries.has(prefix)) entries.set(prefix, entry);
  const around: Listing[] = [];
  const listed: (Listing | undefined)[] = new Array(prefixes.length);
  for (const prefix of await sorted([...entries.keys()], slices)) {
    if (slices.isOver) await slices.rest();
    while (around.length > 0 && !prefix.startsWith(around.at(-1)!.prefix)) around.pop();
    const innermost = around.at(-1);
    const entry = entries.get(prefix)!;
    if (innermost !== undefined && innermost.entry < entry) continue;
    if (innermost !== undefined) {
      innermost.inside ??= [];
      innermost.inside.push(prefix);
    }
    const listing = { prefix, entry, inside: undefined };
    around.push(listing);
    listed[entry] = listing;
  }
  return listed.filter((listing) => listing !== undefined);
}

/** Runs are sorted, then merged two by two. */
async function sorted(texts: readonly string[], slices: TimeSlices): Promise<string[]> {
  let runs: string[][] = [];
  for (let at = 0; at < texts.length; at += AT_ONCE) {
    runs.push(texts.slice(at, at + AT_ONCE).sort());
    if (slices.isOver) await slices.rest();
  }
  while (runs.length > 1) {
    const merged: string[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await merge(runs[at]!, runs[at + 1] ?? [], slices));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge(a: readonly string[], b: readonly string[], slices: TimeSlices): Promise<string[]> {
  const merged: string[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    if (merged.length % AT_ONCE === 0 && slices.isOver) await slices.rest();
    const isNextOfA = j === b.length || (i < a.length && a[i]! <= b[j]!);
    merged.push(isNextOfA ? a[i++]! : b[j++]!);
  }
  return merged;
}
