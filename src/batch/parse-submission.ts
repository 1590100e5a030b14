/**
 * A submission's body, checked (decision 3.1): everything that is wrong at once, with pointers. Items and `config`
 * are kept as the text that was sent, so that no number is re-rounded.
 */
import { compactJson, elementSpans, memberSpans, type Span, writeCompact } from "../base/json-text.ts";
import type { FieldError } from "../contracts/errors.ts";
import { ServiceError } from "../contracts/errors.ts";
import { namedIssues, toFieldErrors } from "../contracts/field-errors.ts";
import { INPUT_VARIANTS, SUBMISSION_KEYS, type Submission, submissionSchema } from "../contracts/jobs.ts";
import { BATCH_BYTES_LIMIT } from "../contracts/limits.ts";

export interface ParsedSubmission {
  workers: number;
  timeout: number | undefined;
  /** The submitter's text; `{}` when there was none. */
  configText: string;
  input:
    | { kind: "items"; batch_size: number; count: number; lines: Buffer }
    | { kind: "lines"; batch_size: number; store_paths: string[] };
}

const NEWLINE = 0x0a;

const NOT_YET_FIELDS: readonly (readonly string[])[] = [
  ["file_path_lister"],
  ["queue_dead_letter_queue"],
  ["output"],
  ["on_failure"],
  ["delimited_files", "includes"],
  ["delimited_files", "excludes"],
];

/** Throws ServiceError with all that is wrong. */
export function parseSubmission(body: Buffer): ParsedSubmission {
  const value = withoutNulls(parseJson(body));
  const checked = submissionSchema.safeParse(value);
  const legalKeys = (path: readonly PropertyKey[]) => SUBMISSION_KEYS[path.join("/")] ?? [];
  const errors = checked.success ? [] : toFieldErrors(namedIssues(checked.error.issues, value, legalKeys));
  errors.push(...variantErrors(value), ...notYetErrors(value));
  if (checked.success && errors.length === 0) {
    const parsed = extract(body, checked.data, errors);
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
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new ServiceError("malformed_json", `the body is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** `null` counts as absent for every optional member of the submission (decision 3.1). */
function withoutNulls(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
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
    configText: config === undefined ? "{}" : compactJson(body, config).toString("utf8"),
  };
  if (submission.delimited_files !== undefined) {
    const { batch_size, store_paths } = submission.delimited_files;
    store_paths.forEach((path, i) => {
      const problem = pathProblem(path);
      if (problem !== undefined)
        errors.push({ pointer: `/delimited_files/store_paths/${i}`, detail: problem });
    });
    return { ...common, input: { kind: "lines", batch_size, store_paths } };
  }
  const { batch_size } = submission.item_list!;
  const list = memberSpans(body, members.get("item_list")!);
  const { lines, count } = itemLines(body, list.get("items")!, batch_size, errors);
  return { ...common, input: { kind: "items", batch_size, count, lines } };
}

function pathProblem(path: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(path)?.[1];
  if (scheme === undefined)
    return `"${path}" is not a path of the shape <scheme>://<bucket>/<key>; a local one is file:///absolute/path`;
  if (["s3", "gs", "az"].includes(scheme)) return `the scheme ${scheme}:// is not supported yet; use file://`;
  if (scheme !== "file") return `the scheme ${scheme}:// is unknown; legal: s3, gs, az, file`;
  if (/\.(gz|zst)$/.test(path)) return "compressed files are not supported yet; decompress it first";
  return path.startsWith("file:///") ? undefined : `"${path}" must be absolute: file:///absolute/path`;
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

function itemTooLarge(bytes: number): string {
  return `has ${bytes} bytes as a batch of its own; a batch must be smaller than ${BATCH_BYTES_LIMIT}: make the item smaller`;
}

function batchTooLarge(first: number, last: number, bytes: number): FieldError {
  const detail = `items ${first} to ${last} make a batch of ${bytes} bytes; it must be smaller than ${BATCH_BYTES_LIMIT}: use a smaller batch_size`;
  return { pointer: `/item_list/items/${first}`, detail };
}
