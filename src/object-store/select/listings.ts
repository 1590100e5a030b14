/** Which prefixes of a selection are listed, and what earlier ones select of them. Cut into slices: there may be 100,000. */
import type { TimeSlices } from "../../base/loop/turns.ts";
import { sortInSlices } from "../listing/sort-in-slices.ts";

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
  const entries = await firstEntries(prefixes, slices);
  const around: Listing[] = [];
  const listed: (Listing | undefined)[] = new Array(prefixes.length);
  for (const prefix of await sortInSlices([...entries.keys()], slices)) {
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

/** The first entry that has each prefix. */
async function firstEntries(prefixes: readonly string[], slices: TimeSlices): Promise<Map<string, number>> {
  const entries = new Map<string, number>();
  for (const [entry, prefix] of prefixes.entries()) {
    if (slices.isOver) await slices.rest();
    if (!entries.has(prefix)) entries.set(prefix, entry);
  }
  return entries;
}
