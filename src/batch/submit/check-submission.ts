/** What a submission must pass, and so a dry run of it (docs/contract/submitting.md#refused-at-once). */
import { ServiceError } from "../../contracts/errors.ts";
import { quoted } from "../../contracts/field-errors.ts";
import { CHECK_PARALLEL_LISTINGS, FIRST_MATCH_MS } from "../../contracts/limits/submissions.ts";
import { IN_SERVER } from "../../contracts/store-paths.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import {
  askerLeft,
  type FileSelection,
  type SelectedFile,
  selectFiles,
} from "../../object-store/select/select-files.ts";
import { inSentNames } from "./older-names.ts";
import { type OutputRequest, outputPrefix } from "./output-request.ts";
import type { ParsedSubmission } from "./parse-submission.ts";
import { readSubmission, type SentSubmission } from "./read-submission.ts";

/** Paths and patterns that a message names. */
const SHOWN_MAX = 5;

export interface CheckDeps {
  store: ObjectStore;
  /** Whether a dead letter queue certainly does not exist. */
  isQueueMissing: (queue: string) => Promise<boolean>;
  /** Throws `queue_full` if too many jobs have not ended. */
  assertMayBegin: () => Promise<void>;
  /** Whether writes below this address can have conditions. Throws the store's error if it may not be written there. */
  hasConditions: (prefix: string) => Promise<boolean>;
  /**
   * Waits for a place among the checks that list stores. Resolves to the function that gives it back, undefined if
   * `over` is aborted before. Throws `queue_full` if too many wait.
   */
  takePlace: (over: AbortSignal) => Promise<(() => void) | undefined>;
}

/**
 * Throws ServiceError if the submission is not valid, or its client is gone. `defaultOutput`: of the API, for a
 * submission without one.
 */
export async function checkedSubmission(
  deps: CheckDeps,
  sent: SentSubmission,
  defaultOutput: OutputRequest | undefined,
): Promise<ParsedSubmission> {
  await deps.assertMayBegin();
  const parsed = await readSubmission(sent);
  const output = parsed.output ?? defaultOutput;
  const submission = { ...parsed, output };
  const { input } = submission;
  assertPriority(submission, sent.priorityMax);
  await assertQueue(deps, submission);
  if (input.kind !== "items") await assertAnyFile(deps, input, sent.left);
  if (output !== undefined) await assertOutput(deps, output);
  return submission;
}

/** docs/contract/submitting.md#priority-bound */
function assertPriority({ priority }: ParsedSubmission, most = Number.POSITIVE_INFINITY): void {
  if (priority <= most) return;
  const detail = `priority must be at most ${most} (got ${priority}); only an admin key may give more than this server's --submit-priority-max`;
  const fields = [{ pointer: "/priority", detail }];
  throw new ServiceError("invalid_request", `the submission is not valid: ${detail}`, { fields });
}

/** Refuses an output that could be overwritten by another writer, or not be written at all. */
async function assertOutput({ hasConditions }: CheckDeps, output: OutputRequest): Promise<void> {
  if (await hasConditions(outputPrefix(output))) return;
  const detail = `the store of "${output.store_path}" ignores the conditions of writes (If-Match, If-None-Match), so two writers could mix an output; choose another store, or "${IN_SERVER}"`;
  const fields = [{ pointer: "/output/store_path", detail }];
  throw new ServiceError("invalid_request", `the submission is not valid: ${detail}`, { fields });
}

/** Refuses an SQS queue that certainly does not exist: every message to it would be refused. */
async function assertQueue(
  { isQueueMissing }: CheckDeps,
  { deadLetters, olderNames }: ParsedSubmission,
): Promise<void> {
  if (deadLetters === undefined || !(await isQueueMissing(deadLetters.queue))) return;
  const detail = `there is no queue ${deadLetters.arn}; create it first, or name a queue of Quern's own`;
  const fields = inSentNames([{ pointer: "/queue_dead_letter_queue/arn", detail }], olderNames);
  throw new ServiceError("invalid_request", `the submission is not valid: ${detail}`, { fields });
}

type FilesInput = Extract<ParsedSubmission["input"], { kind: "lines" | "paths" }>;

/**
 * Throws `no_files_found`, or the error that prevents reading the first file. If the first match takes too long, or the
 * place for the check, the check passes; the job then reports any error. `left`: aborted when the client is gone.
 */
async function assertAnyFile(
  { store, takePlace }: CheckDeps,
  input: FilesInput,
  left?: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  const timer = setTimeout(end, FIRST_MATCH_MS);
  left?.addEventListener("abort", end);
  if (left?.aborted) end();
  let giveBack: (() => void) | undefined;
  try {
    giveBack = await takePlace(over.signal);
    const isLate = giveBack === undefined || over.signal.aborted;
    const first = isLate ? "late" : await firstMatch(store, input, over.signal);
    if (left?.aborted) throw askerLeft();
    if (first === "late") return;
    clearTimeout(timer);
    if (first.done) throw noFilesFound(input);
    if (input.kind === "lines") await assertReadable(store, first.value[0]!.path);
  } finally {
    clearTimeout(timer);
    left?.removeEventListener("abort", end);
    end();
    giveBack?.();
  }
}

/** `late` if `over` is aborted before the first match. */
async function firstMatch(
  store: ObjectStore,
  input: FilesInput,
  over: AbortSignal,
): Promise<IteratorResult<SelectedFile[]> | "late"> {
  const late = new Promise<"late">((resolve) => {
    over.addEventListener("abort", () => resolve("late"), { once: true });
  });
  const options = { sizes: false, signal: over, parallel: CHECK_PARALLEL_LISTINGS };
  const pages = selectFiles(store, input, options);
  const next = pages.next();
  // A listing that is cut off has no caller for its error.
  next.catch(() => {});
  return Promise.race([late, next]).finally(() => {
    pages.return(undefined).catch(() => {});
  });
}

/** Opens the file: if it may not be read, the submission fails now instead of the job later. */
async function assertReadable(store: ObjectStore, path: string): Promise<void> {
  const object = await store.open(path).catch((error: NodeJS.ErrnoException) => {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("invalid_request", `${path} cannot be read: ${error.message}`, { cause: error });
  });
  await object.close();
}

function noFilesFound({ store_paths, includes = [], excludes = [] }: FileSelection): ServiceError {
  const filters = [
    ...(includes.length > 0 ? [`includes ${someOf(includes)}`] : []),
    ...(excludes.length > 0 ? [`excludes ${someOf(excludes)}`] : []),
  ];
  const filtered = filters.length > 0 ? ` with ${filters.join(" and ")}` : "";
  const globHint =
    includes.length > 0 ? '; a pattern matches the whole path, so write "**.jpg", not "*.jpg"' : "";
  return new ServiceError(
    "no_files_found",
    `no file matches store_paths: ${someOf(store_paths)}${filtered}; an entry selects all files whose path begins with it${globHint}`,
  );
}

/** The first few, if there are many. */
function someOf(texts: readonly string[]): string {
  const shown = texts.slice(0, SHOWN_MAX).map((text) => quoted(text).slice(1, -1));
  return texts.length > SHOWN_MAX
    ? `${shown.join(", ")} and ${texts.length - SHOWN_MAX} more`
    : shown.join(", ");
}
