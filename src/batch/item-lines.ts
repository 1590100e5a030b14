/** The items of a submission as lines of compact JSON, each within its limits. */
import { isUtf8 } from "node:buffer";
import { depthOf, elementSpans, type Span, writeCompact } from "../base/json-text.ts";
import type { FieldError } from "../contracts/errors.ts";
import { BATCH_BYTES_LIMIT, ITEM_DEPTH_MAX } from "../contracts/limits.ts";

const NEWLINE = 0x0a;
/** More errors of items are not looked for. */
const ITEM_ERRORS_MAX = 1000;

/**
 * The items as compact lines, in one buffer however many there are. Items and batches that reach the limit, measured as
 * compact JSON arrays, become errors.
 */
export function itemLines(
  body: Buffer,
  span: Span,
  batchSize: number,
  isText: boolean,
  errors: FieldError[],
): { lines: Buffer; count: number } {
  // An item and its newline take no more than the item and its comma or bracket did.
  const lines = Buffer.allocUnsafeSlow(span.end - span.start);
  let at = 0;
  let count = 0;
  let batchStart = 0;
  for (const item of elementSpans(body, span)) {
    if (errors.length >= ITEM_ERRORS_MAX) break;
    const start = at;
    const problem = itemProblem(body, item, isText);
    if (problem !== undefined) errors.push({ pointer: `/item_list/items/${count}`, detail: problem });
    at = writeCompact(body, item, lines, at);
    lines[at++] = NEWLINE;
    const isAlone = at - start + 1 >= BATCH_BYTES_LIMIT;
    if (isAlone) errors.push({ pointer: `/item_list/items/${count}`, detail: itemTooLarge(at - start + 1) });
    const isLast = ++count % batchSize === 0;
    // Brackets and commas of an array are as many bytes as the newlines here, and one more.
    if (isLast || isAlone) {
      const first = Math.floor((count - 1) / batchSize) * batchSize;
      if (!isAlone && at - batchStart + 1 >= BATCH_BYTES_LIMIT)
        errors.push(batchTooLarge(first, count - 1, at - batchStart + 1));
      batchStart = at;
    }
  }
  if (at - batchStart + 1 >= BATCH_BYTES_LIMIT)
    errors.push(batchTooLarge(count - (count % batchSize), count - 1, at - batchStart + 1));
  return { lines: lines.subarray(0, at), count };
}

/** What no worker could be given as it stands. */
function itemProblem(body: Buffer, { start, end }: Span, isText: boolean): string | undefined {
  if (!isText && !isUtf8(body.subarray(start, end)))
    return "is not valid UTF-8: send the text as UTF-8, or bytes in base64";
  // Each level takes two bytes at least.
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
