/** Reads the value of a submission's body, except its items, which stay as they were sent. */
import { jsonFault } from "../../base/json/fault.ts";
import { isDeeperThan } from "../../base/json/measure.ts";
import { elementSpans, memberSpans, type Span } from "../../base/json/spans.ts";
import { OPEN_BRACE, OPEN_BRACKET, skipSpace } from "../../base/json/tokens.ts";
import { type FieldError, ServiceError } from "../../contracts/errors.ts";
import { SUBMISSION_KEYS } from "../../contracts/jobs.ts";
import { READ_HERE_BYTES_MAX } from "../../contracts/limits/event-loop.ts";
import { QUOTED_LENGTH_MAX } from "../../contracts/limits/responses.ts";
import {
  BODY_DEPTH_MAX,
  NUMBER_CHARACTERS_MAX,
  SUBMISSION_HEAD_BYTES_MAX,
  SUBMISSION_KEYS_MAX,
} from "../../contracts/limits/submissions.ts";

/** `total`: the number of all errors, if these are only the first ones. */
export function invalid(errors: readonly FieldError[], total = errors.length): ServiceError {
  const [firstError] = errors;
  const more = total > 1 ? ` (and ${total - 1} more)` : "";
  return new ServiceError(
    "invalid_request",
    `the submission is not valid: ${firstError!.pointer || "the body"}: ${firstError!.detail}${more}`,
    { fields: errors, fieldsTotal: total },
  );
}

function crowded(): FieldError {
  const legal = Object.values(SUBMISSION_KEYS).flat().join(", ");
  return { pointer: "", detail: `an object has more than ${SUBMISSION_KEYS_MAX} keys; legal keys: ${legal}` };
}

/**
 * The submission's value. In a long one, a single stand-in replaces all items: there may be millions, which are cut out
 * as text.
 */
export function outline(body: Buffer): unknown {
  if (body.length <= READ_HERE_BYTES_MAX) return parseJson(body);
  assertFlat(body);
  assertWithinLimits(body);
  const whole = { start: 0, end: body.length };
  if (!isObject(body, whole)) return [];
  const members = memberSpans(body, whole, SUBMISSION_KEYS_MAX);
  const list = members.get("item_list");
  const inner =
    list !== undefined && isObject(body, list) ? memberSpans(body, list, SUBMISSION_KEYS_MAX) : undefined;
  if (Math.max(members.size, inner?.size ?? 0) > SUBMISSION_KEYS_MAX) throw invalid([crowded()]);
  const items = inner?.get("items");
  const standIn = items === undefined ? undefined : standInOf(body, items);
  const bytes =
    bytesOf(members) - lengthOf(inner && list) + bytesOf(inner ?? new Map()) - lengthOf(standIn && items);
  if (bytes > SUBMISSION_HEAD_BYTES_MAX) throw invalid([headTooLong(members)]);
  const textOf = ({ start, end }: Span) => body.toString("utf8", start, end);
  const value = valuesOf(members, (name, span) =>
    JSON.parse(name === "item_list" && inner ? "{}" : textOf(span)),
  );
  if (inner !== undefined)
    value.item_list = valuesOf(
      inner,
      (name, span) => (name === "items" && standIn) || JSON.parse(textOf(span)),
    );
  return value;
}

function isObject(body: Buffer, { start }: Span): boolean {
  return body[skipSpace(body, start)] === OPEN_BRACE;
}

/** The stand-in for an array of items; undefined for anything else. */
function standInOf(body: Buffer, span: Span): unknown[] | undefined {
  if (body[span.start] !== OPEN_BRACKET) return undefined;
  const first = elementSpans(body, span).next();
  return first.done ? [] : [0];
}

/** Bytes of the spans only: what is between them is never read. */
function bytesOf(spans: Map<string, Span>): number {
  return [...spans.values()].reduce((sum, span) => sum + lengthOf(span), 0);
}

function lengthOf(span: Span | undefined): number {
  return span === undefined ? 0 : span.end - span.start;
}

function valuesOf(
  spans: Map<string, Span>,
  read: (name: string, span: Span) => unknown,
): Record<string, unknown> {
  return Object.fromEntries([...spans].map(([name, span]) => [name, read(name, span)]));
}

/** Names the longest member. `item_list` counts with its items. */
function headTooLong(members: Map<string, Span>): FieldError {
  const [longest] = [...members].sort(([, a], [, b]) => b.end - b.start - (a.end - a.start));
  const [name, { start, end }] = longest!;
  const detail = `has ${end - start} bytes; a submission without its items has at most ${SUBMISSION_HEAD_BYTES_MAX}: put large values into a file`;
  return { pointer: `/${name.slice(0, QUOTED_LENGTH_MAX)}`, detail };
}

function assertWithinLimits(body: Buffer): void {
  const fault = jsonFault(body, { depth: BODY_DEPTH_MAX, numberCharacters: NUMBER_CHARACTERS_MAX });
  if (fault !== undefined)
    throw new ServiceError("malformed_json", `the body is not valid JSON: ${fault.why} at byte ${fault.at}`);
}

function assertFlat(body: Buffer): void {
  if (!isDeeperThan(body, BODY_DEPTH_MAX)) return;
  throw new ServiceError(
    "invalid_request",
    `the body is nested deeper than ${BODY_DEPTH_MAX}: make it flatter`,
  );
}

function parseJson(body: Buffer): unknown {
  assertFlat(body);
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    // A shorter one cannot have a longer number.
    if (body.length > NUMBER_CHARACTERS_MAX) assertWithinLimits(body);
    return value;
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("malformed_json", `the body is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
