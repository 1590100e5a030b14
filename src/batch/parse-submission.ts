/**
 * A submission's body, checked (decision 3.1): everything that is wrong at once, with pointers. Items and `config`
 * are kept as the text that was sent, so that no number is re-rounded.
 */
import { isUtf8 } from "node:buffer";
import {
  compactJson,
  depthOf,
  elementSpans,
  isDeeperThan,
  jsonFault,
  memberSpans,
  type Span,
  skipSpace,
  writeCompact,
} from "../base/json-text.ts";
import type { FieldError } from "../contracts/errors.ts";
import { ServiceError } from "../contracts/errors.ts";
import { namedIssues, quoted, toFieldErrors } from "../contracts/field-errors.ts";
import { INPUT_VARIANTS, SUBMISSION_KEYS, type Submission, submissionSchema } from "../contracts/jobs.ts";
import {
  BATCH_BYTES_LIMIT,
  BODY_DEPTH_MAX,
  CONFIG_BYTES_MAX,
  CONFIG_DEPTH_MAX,
  GLOB_CHARACTERS_MAX,
  GLOB_LENGTH_MAX,
  GLOBS_MAX,
  ITEM_DEPTH_MAX,
  PATH_BYTES_MAX,
  QUOTED_LENGTH_MAX,
  READ_HERE_BYTES_MAX,
  STORE_PATHS_CHARACTERS_MAX,
  STORE_PATHS_MAX,
  SUBMISSION_HEAD_BYTES_MAX,
  SUBMISSION_KEYS_MAX,
} from "../contracts/limits.ts";
import { parseQueueName, QUEUE_NAME_RULE, queueKey } from "../contracts/queues.ts";
import { compileGlob, GlobError } from "../object-store/glob.ts";
import type { FileSelection } from "../object-store/select-files.ts";
import { normalizedPath, pathProblem } from "../object-store/store-path.ts";

export interface ParsedSubmission {
  workers: number;
  timeout: number | undefined;
  /** The submitter's text; `{}` when there was none. */
  configText: string;
  deadLetters: { arn: string; queue: string; max_receive_count: number } | undefined;
  input:
    | { kind: "items"; batch_size: number; count: number; lines: Buffer }
    | ({ kind: "lines" | "paths"; batch_size: number } & FileSelection);
}

const NEWLINE = 0x0a;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
/** More errors of items are not looked for. */
const ITEM_ERRORS_MAX = 1000;

const GLOBS = {
  count: GLOBS_MAX,
  lengthMax: GLOB_LENGTH_MAX,
  characters: GLOB_CHARACTERS_MAX,
  cure: "{a,b} and ** make one pattern of many",
};
const LISTS_MAX = [
  {
    name: "store_paths",
    ...{ count: STORE_PATHS_MAX, lengthMax: PATH_BYTES_MAX, characters: STORE_PATHS_CHARACTERS_MAX },
    cure: "a prefix selects all files below it",
  },
  { name: "includes", ...GLOBS },
  { name: "excludes", ...GLOBS },
];

const NOT_YET_FIELDS: readonly (readonly string[])[] = [["output"], ["on_failure"]];

/** Throws ServiceError with all that is wrong. */
export function parseSubmission(body: Buffer): ParsedSubmission {
  const value = withoutNulls(outline(body));
  const isText = isUtf8(body);
  const long = longLists(value);
  if (long.length > 0) throw invalid(long);
  const checked = submissionSchema.safeParse(value);
  const legalKeys = (path: readonly PropertyKey[]) => SUBMISSION_KEYS[path.join("/")] ?? [];
  const errors = checked.success ? [] : toFieldErrors(namedIssues(checked.error.issues, value, legalKeys));
  errors.push(...variantErrors(value), ...notYetErrors(value));
  if (checked.success && errors.length === 0) {
    const parsed = extract(body, checked.data, isText, errors);
    if (errors.length === 0 && !isText)
      errors.push({ pointer: "", detail: "the body is not valid UTF-8, as JSON must be" });
    if (errors.length === 0) return parsed;
  }
  throw invalid(errors);
}

function invalid(errors: readonly FieldError[]): ServiceError {
  const [firstError] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return new ServiceError(
    "invalid_request",
    `the submission is not valid: ${firstError!.pointer || "the body"}: ${firstError!.detail}${more}`,
    { fields: errors },
  );
}

function crowded(): FieldError {
  const legal = Object.values(SUBMISSION_KEYS).flat().join(", ");
  return { pointer: "", detail: `an object has more than ${SUBMISSION_KEYS_MAX} keys; legal keys: ${legal}` };
}

/** Lists that are too long to be looked at one by one. */
function longLists(value: unknown): FieldError[] {
  return (["delimited_files", "file_path_lister"] as const).flatMap((variant) =>
    LISTS_MAX.flatMap(({ name, count, lengthMax, characters, cure }) => {
      const list = valueAt(value, [variant, name]);
      if (!Array.isArray(list)) return [];
      let sum = 0;
      for (const text of list.slice(0, count))
        sum += typeof text === "string" ? Math.min(text.length, lengthMax) : 0;
      if (list.length <= count && sum <= characters) return [];
      const detail =
        list.length > count
          ? `must contain at most ${count} elements (got ${list.length}); ${cure}`
          : `must have at most ${characters} characters together (got ${sum}); ${cure}`;
      return [{ pointer: `/${variant}/${name}`, detail }];
    }),
  );
}

/**
 * The submission's value. Of a long one the items are not read: one stands for them all. They may be millions, and are cut out as text.
 */
function outline(body: Buffer): unknown {
  if (body.length <= READ_HERE_BYTES_MAX) return parseJson(body);
  assertFlat(body);
  const fault = jsonFault(body, BODY_DEPTH_MAX);
  if (fault !== undefined)
    throw new ServiceError("malformed_json", `the body is not valid JSON: ${fault.why} at byte ${fault.at}`);
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

/** For an array; undefined for anything else. */
function standInOf(body: Buffer, span: Span): unknown[] | undefined {
  if (body[span.start] !== OPEN_BRACKET) return undefined;
  const first = elementSpans(body, span).next();
  return first.done ? [] : [0];
}

/** What is between them is never read. */
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

/** Names the longest member, but for the items. */
function headTooLong(members: Map<string, Span>): FieldError {
  const [longest] = [...members].sort(([, a], [, b]) => b.end - b.start - (a.end - a.start));
  const [name, { start, end }] = longest!;
  const detail = `has ${end - start} bytes; a submission without its items has at most ${SUBMISSION_HEAD_BYTES_MAX}: put what is large into a file`;
  return { pointer: `/${name.slice(0, QUOTED_LENGTH_MAX)}`, detail };
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
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new ServiceError("malformed_json", `the body is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** `null` counts as absent for every optional member of the submission and of its inputs (decision 3.1). */
function withoutNulls(value: unknown, depth = 0): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(
    members.map(([name, member]) => [
      name,
      depth === 0 && name !== "config" ? withoutNulls(member, 1) : member,
    ]),
  );
}

function variantErrors(value: unknown): FieldError[] {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [];
  const given = INPUT_VARIANTS.filter((variant) => variant in value);
  if (given.length === 1) return [];
  const names = INPUT_VARIANTS.join(", ");
  const detail =
    given.length === 0
      ? `specify exactly one of ${names}; none was given`
      : `specify exactly one of ${names}; given: ${given.join(", ")}`;
  return [{ pointer: "", detail }];
}

function notYetErrors(value: unknown): FieldError[] {
  return NOT_YET_FIELDS.filter((path) => valueAt(value, path) !== undefined).map((path) => ({
    pointer: `/${path.join("/")}`,
    detail: "is not supported yet; leave it out",
  }));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (at === null || typeof at !== "object" ? undefined : (at as Record<string, unknown>)[name]),
    value,
  );
}

function extract(
  body: Buffer,
  submission: Submission,
  isText: boolean,
  errors: FieldError[],
): ParsedSubmission {
  const members = memberSpans(body, { start: 0, end: body.length });
  const config = submission.config === undefined ? undefined : members.get("config");
  const common = {
    workers: submission.workers,
    timeout: submission.timeout,
    configText: config === undefined ? "{}" : configText(body, config, errors),
    deadLetters: deadLetters(submission, errors),
  };
  for (const [variant, kind] of [
    ["delimited_files", "lines"],
    ["file_path_lister", "paths"],
  ] as const) {
    const given = submission[variant];
    if (given === undefined) continue;
    errors.push(...selectionErrors(variant, given));
    return { ...common, input: { kind, ...given, store_paths: given.store_paths.map(normalizedPath) } };
  }
  const { batch_size } = submission.item_list!;
  const list = memberSpans(body, members.get("item_list")!);
  const { lines, count } = itemLines(body, list.get("items")!, batch_size, isText, errors);
  return { ...common, input: { kind: "items", batch_size, count, lines } };
}

/** As compact JSON, as all that is measured in bytes. */
function configText(body: Buffer, span: Span, errors: FieldError[]): string {
  const compact = compactJson(body, span);
  const problem = configProblem(compact);
  if (problem !== undefined) errors.push({ pointer: "/config", detail: problem });
  return compact.toString("utf8");
}

function configProblem(compact: Buffer): string | undefined {
  if (compact.length > CONFIG_BYTES_MAX)
    return `has ${compact.length} bytes as compact JSON, and at most ${CONFIG_BYTES_MAX} are allowed: put large values into a file, and give its path`;
  if (isDeeperThan(compact, CONFIG_DEPTH_MAX))
    return `is nested deeper than ${CONFIG_DEPTH_MAX}: make it flatter`;
  return undefined;
}

function deadLetters(
  { queue_dead_letter_queue: given }: Submission,
  errors: FieldError[],
): ParsedSubmission["deadLetters"] {
  if (given === undefined) return undefined;
  const name = parseQueueName(given.arn);
  if (name !== undefined) return { ...given, queue: queueKey(name) };
  errors.push({ pointer: "/queue_dead_letter_queue/arn", detail: `${quoted(given.arn)} ${QUEUE_NAME_RULE}` });
  return undefined;
}

function selectionErrors(variant: string, { store_paths, includes, excludes }: FileSelection): FieldError[] {
  const globs = { includes, excludes };
  return [
    ...problems(`/${variant}/store_paths`, store_paths, pathProblem),
    ...Object.entries(globs).flatMap(([name, patterns]) =>
      problems(`/${variant}/${name}`, patterns ?? [], globProblem),
    ),
  ];
}

function problems(
  pointer: string,
  texts: readonly string[],
  problemOf: (text: string) => string | undefined,
): FieldError[] {
  return texts.flatMap((text, i) => {
    const detail = problemOf(text);
    return detail === undefined ? [] : [{ pointer: `${pointer}/${i}`, detail }];
  });
}

function globProblem(pattern: string): string | undefined {
  try {
    compileGlob(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof GlobError) return `${quoted(pattern)} is not a glob pattern: ${error.message}`;
    throw error;
  }
}

/**
 * The items as compact lines, in one buffer however many there are. Items and batches that reach the limit, measured as
 * compact JSON arrays, become errors.
 */
function itemLines(
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
