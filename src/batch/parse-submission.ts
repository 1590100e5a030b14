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
  memberSpans,
  type Span,
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
  ITEM_DEPTH_MAX,
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

const NOT_YET_FIELDS: readonly (readonly string[])[] = [["output"], ["on_failure"]];

/** Throws ServiceError with all that is wrong. */
export function parseSubmission(body: Buffer): ParsedSubmission {
  const value = withoutNulls(parseJson(body));
  const isText = isUtf8(body);
  const checked = submissionSchema.safeParse(value);
  const legalKeys = (path: readonly PropertyKey[]) => SUBMISSION_KEYS[path.join("/")] ?? [];
  const errors = checked.success ? [] : toFieldErrors(namedIssues(checked.error.issues, value, legalKeys));
  errors.push(...variantErrors(value), ...notYetErrors(value));
  if (checked.success && errors.length === 0) {
    const parsed = extract(body, checked.data, errors);
    if (errors.length === 0 && !isText)
      errors.push({ pointer: "", detail: "the body is not valid UTF-8, as JSON must be" });
    if (errors.length === 0) return parsed;
  }
  const [firstError] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  throw new ServiceError(
    "invalid_request",
    `the submission is not valid: ${firstError!.pointer || "the body"}: ${firstError!.detail}${more}`,
    { fields: errors },
  );
}

function parseJson(body: Buffer): unknown {
  if (isDeeperThan(body, BODY_DEPTH_MAX))
    throw new ServiceError(
      "invalid_request",
      `the body is nested deeper than ${BODY_DEPTH_MAX}: make it flatter`,
    );
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

function extract(body: Buffer, submission: Submission, errors: FieldError[]): ParsedSubmission {
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
  const { lines, count } = itemLines(body, list.get("items")!, batch_size, errors);
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
  errors: FieldError[],
): { lines: Buffer; count: number } {
  // An item and its newline take no more than the item and its comma or bracket did.
  const lines = Buffer.allocUnsafe(span.end - span.start);
  let at = 0;
  let count = 0;
  let batchStart = 0;
  for (const item of elementSpans(body, span)) {
    const start = at;
    const problem = itemProblem(body, item);
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
function itemProblem(body: Buffer, { start, end }: Span): string | undefined {
  const text = body.subarray(start, end);
  if (!isUtf8(text)) return "is not valid UTF-8: send the text as UTF-8, or bytes in base64";
  // Each level takes two bytes at least.
  if (text.length <= 2 * ITEM_DEPTH_MAX || depthOf(body, { start, end }) <= ITEM_DEPTH_MAX) return undefined;
  return `is nested deeper than ${ITEM_DEPTH_MAX}: make it flatter`;
}

function itemTooLarge(bytes: number): string {
  return `has ${bytes} bytes as a batch of its own; a batch must be smaller than ${BATCH_BYTES_LIMIT}: make the item smaller`;
}

function batchTooLarge(first: number, last: number, bytes: number): FieldError {
  const detail = `items ${first} to ${last} make a batch of ${bytes} bytes; it must be smaller than ${BATCH_BYTES_LIMIT}: use a smaller batch_size`;
  return { pointer: `/item_list/items/${first}`, detail };
}
