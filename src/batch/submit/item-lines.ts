/** The items of a submission as lines of compact JSON, each within its limits. */
import { isUtf8 } from "node:buffer";
import { depthOf } from "../../base/json/measure.ts";
import { elementSpans, type Span, writeCompact } from "../../base/json/spans.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { BATCH_BYTES_LIMIT, ITEM_DEPTH_MAX } from "../../contracts/limits/submissions.ts";
import type { FirstErrors } from "../../contracts/validation/first-errors.ts";

const NEWLINE = 0x0a;
/** The check of items stops after this many errors. */
const ITEM_ERRORS_MAX = 1000;

/**
 * The items as compact lines, all in one buffer. Items and batches that reach the limit become errors. They are
 * measured as compact JSON arrays.
 */
export function itemLines(
  body: Buffer,
  span: Span,
  batchSize: number,
  isText: boolean,
  errors: FirstErrors,
): { lines: Buffer; count: number } {
  // An item and its newline take no more than the item and its comma or bracket did.
  const lines = Buffer.allocUnsafeSlow(span.end - span.start);
  let at = 0;
  let count = 0;
  let batchStart = 0;
  for (const item of elementSpans(body, span)) {
    if (errors.total >= ITEM_ERRORS_MAX) break;
    const start = at;
    const problem = itemProblem(body, item, isText);
    if (problem !== undefined) errors.add({ pointer: `/item_list/items/${count}`, detail: problem });
    at = writeCompact(body, item, lines, at);
    lines[at++] = NEWLINE;
    const isAlone = at - start + 1 >= BATCH_BYTES_LIMIT;
    if (isAlone) errors.add({ pointer: `/item_list/items/${count}`, detail: itemTooLarge(at - start + 1) });
    const isLast = ++count % batchSize === 0;
    // Brackets and commas of an array are one byte more than the newlines here.
    if (isLast || isAlone) {
      const first = Math.floor((count - 1) / batchSize) * batchSize;
      if (!isAlone && at - batchStart + 1 >= BATCH_BYTES_LIMIT)
        errors.add(batchTooLarge(first, count - 1, at - batchStart + 1));
      batchStart = at;
    }
  }
  if (at - batchStart + 1 >= BATCH_BYTES_LIMIT)
    errors.add(batchTooLarge(count - (count % batchSize), count - 1, at - batchStart + 1));
  return { lines: lines.subarray(0, at), count };
}

/** Why an item cannot be sent to a worker as it is. */
function itemProblem(body: Buffer, { start, end }: Span, isText: boolean): string | undefined {
  if (!isText && !isUtf8(body.subarray(start, end)))
    return "is not valid UTF-8: send the text as UTF-8, or bytes in base64";
  // Each level takes at least two bytes, so a short item cannot be too deep.
  if (end - start <= 2 * ITEM_DEPTH_MAX || depthOf(body, { start, end }) <= ITEM_DEPTH_MAX) return undefined;
  return `is nested deeper than ${ITEM_DEPTH_MAX}: make it flatter`;
}

function itemTooLarge(bytes: number): string {
  return `has ${bytes} bytes as a batch of its own; a batch must be smaller than ${BATCH_BYTES_LIMIT}: make the item smaller`;
}

function batchTooLarge(first: number, last: number, bytes: number): FieldError {
  const detail = `items ${first} to ${last} make a batch of ${bytes} bytes; it must be smaller than ${BATCH_BYTES_LIMIT}: use a smaller batch_size`;
  return { pointer: `/item_list/items/${first}`, detail };
}
