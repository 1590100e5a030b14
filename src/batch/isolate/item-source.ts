/** Where an item came from: its file, and its line there. Pure. */
import type { Segment } from "../../database/segment-rows.ts";

export interface ItemSource {
  path: string;
  /** From 1; undefined if the item is the path itself. */
  line?: number;
}

/**
 * The source of item `at` of the segment's items. Undefined for inline items, and for segments of releases that did not
 * record lines. `lineNumbers`: of a segment with blank lines (LoadedSegment).
 */
export function sourceOfLine(
  { ranges }: Pick<Segment, "ranges">,
  at: number,
  lineNumbers: readonly number[] | undefined,
): ItemSource | undefined {
  let first = 0;
  for (const { path, lines } of ranges) {
    if (lines === undefined) return undefined;
    if (at < first + lines.items)
      return { path: lines.file ?? path, line: lines.before + (lineNumbers?.[at] ?? at - first + 1) };
    first += lines.items;
  }
  return undefined;
}
