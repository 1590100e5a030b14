/**
 * Parses and checks a submission's body (docs/contract/submitting.md#one-input). It reports all errors at once, with
 * pointers. Items and `config` are kept as the text that was sent, so that no number is rounded again. A rule
 * that needs a store or a queue is in check-submission.ts.
 */
import { isUtf8 } from "node:buffer";
import { isDeeperThan } from "../../base/json/measure.ts";
import { compactJson, memberSpans, type Span } from "../../base/json/spans.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { firstErrors, quoted } from "../../contracts/field-errors.ts";
import { INPUT_VARIANTS, SUBMISSION_KEYS, type Submission, submissionSchema } from "../../contracts/jobs.ts";
import { CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX } from "../../contracts/limits/configuration.ts";
import { SPLIT_ITEMS_MAX } from "../../contracts/limits/jobs.ts";
import {
  GLOB_CHARACTERS_MAX,
  GLOB_LENGTH_MAX,
  GLOBS_MAX,
  PATH_BYTES_MAX,
  STORE_PATHS_CHARACTERS_MAX,
  STORE_PATHS_MAX,
} from "../../contracts/limits/submissions.ts";
import { parseQueueName, QUEUE_NAME_RULE, queueKey } from "../../contracts/queues.ts";
import { outputPathProblem, pathProblem } from "../../contracts/store-paths.ts";
import { FirstErrors } from "../../contracts/validation/first-errors.ts";
import { compileGlob } from "../../object-store/select/glob.ts";
import { GlobError } from "../../object-store/select/parse-glob.ts";
import type { FileSelection } from "../../object-store/select/select-files.ts";
import { normalizedPath } from "../../object-store/store-path.ts";
import { itemLines } from "./item-lines.ts";
import { inSentNames, type OlderName, withNewerNames } from "./older-names.ts";
import { invalid, outline } from "./outline-submission.ts";
import type { OutputRequest } from "./output-request.ts";

export interface ParsedSubmission {
  /** Names of Cortex that the submission used; everything else here has the newer names. */
  olderNames: readonly OlderName[];
  workers: number;
  timeout: number | undefined;
  /** The submitter's text; `{}` if there was none. */
  configText: string;
  deadLetters: { arn: string; queue: string; max_receive_count: number } | undefined;
  /** As it was given; undefined if the submission has no `output`. */
  output: OutputRequest | undefined;
  /** `on_failure: isolate`. */
  isolates: boolean;
  priority: number;
  input:
    | { kind: "items"; batch_size: number; count: number; lines: Buffer }
    | ({ kind: "lines" | "paths"; batch_size: number } & FileSelection);
}

const GLOBS = {
  count: GLOBS_MAX,
  lengthMax: GLOB_LENGTH_MAX,
  characters: GLOB_CHARACTERS_MAX,
  cure: "combine patterns with {a,b} and **",
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

/** Throws ServiceError with all errors. */
export function parseSubmission(body: Buffer): ParsedSubmission {
  const { value, used, errors: twice } = withNewerNames(withoutNulls(outline(body)));
  const isText = isUtf8(body);
  const long = longLists(value);
  if (long.length > 0) throw invalid(inSentNames(long, used));
  const checked = submissionSchema.safeParse(value);
  const legalKeys = (path: readonly PropertyKey[]) => SUBMISSION_KEYS[path.join("/")] ?? [];
  const errors = new FirstErrors();
  errors.add(...twice);
  if (!checked.success) errors.addAll(firstErrors(checked.error.issues, value, legalKeys));
  errors.add(...variantErrors(value));
  if (checked.success) errors.add(...splitErrors(checked.data));
  if (checked.success && errors.total === 0) {
    const parsed = extract(body, checked.data, isText, errors);
    if (errors.total === 0 && !isText)
      errors.add({ pointer: "", detail: "the body is not valid UTF-8, as JSON must be" });
    if (errors.total === 0) return { ...parsed, olderNames: used };
  }
  throw invalid(inSentNames(errors.first, used), errors.total);
}

/** Errors for lists that are too long to check entry by entry. */
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
 * `null` counts as absent for every optional member of the submission and of its inputs
 * (docs/contract/submitting.md#null-is-absent).
 */
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

/** A batch that may be split has few enough items for its search. */
function splitErrors(submission: Submission): FieldError[] {
  if (submission.on_failure !== "isolate") return [];
  return INPUT_VARIANTS.flatMap((variant) => {
    const size = submission[variant]?.batch_size ?? 0;
    if (size <= SPLIT_ITEMS_MAX) return [];
    const detail = `must be at most ${SPLIT_ITEMS_MAX} with "on_failure": "isolate" (got ${size}), which splits batches into single items`;
    return [{ pointer: `/${variant}/batch_size`, detail }];
  });
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
  errors: FirstErrors,
): Omit<ParsedSubmission, "olderNames"> {
  const members = memberSpans(body, { start: 0, end: body.length });
  const config = submission.config === undefined ? undefined : members.get("config");
  const common = {
    workers: submission.workers,
    timeout: submission.timeout,
    configText: config === undefined ? "{}" : configText(body, config, errors),
    deadLetters: deadLetters(submission, errors),
    output: outputOf(submission, errors),
    isolates: submission.on_failure === "isolate",
    priority: submission.priority ?? 0,
  };
  for (const [variant, kind] of [
    ["delimited_files", "lines"],
    ["file_path_lister", "paths"],
  ] as const) {
    const given = submission[variant];
    if (given === undefined) continue;
    addSelectionErrors(variant, given, errors);
    return { ...common, input: { kind, ...given, store_paths: given.store_paths.map(normalizedPath) } };
  }
  const { batch_size } = submission.item_list!;
  const list = memberSpans(body, members.get("item_list")!);
  const { lines, count } = itemLines(body, list.get("items")!, batch_size, isText, errors);
  return { ...common, input: { kind: "items", batch_size, count, lines } };
}

/** Returns `config` as compact JSON, like everything that is measured in bytes. */
function configText(body: Buffer, span: Span, errors: FirstErrors): string {
  const compact = compactJson(body, span);
  const problem = configProblem(compact);
  if (problem !== undefined) errors.add({ pointer: "/config", detail: problem });
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
  errors: FirstErrors,
): ParsedSubmission["deadLetters"] {
  if (given === undefined) return undefined;
  const name = parseQueueName(given.arn);
  if (name !== undefined) return { ...given, queue: queueKey(name) };
  errors.add({ pointer: "/queue_dead_letter_queue/arn", detail: `${quoted(given.arn)} ${QUEUE_NAME_RULE}` });
  return undefined;
}

function outputOf({ output }: Submission, errors: FirstErrors): OutputRequest | undefined {
  if (output === undefined) return undefined;
  const problem = outputPathProblem(output.store_path);
  if (problem !== undefined) errors.add({ pointer: "/output/store_path", detail: problem });
  return output;
}

function addSelectionErrors(
  variant: string,
  { store_paths, includes, excludes }: FileSelection,
  errors: FirstErrors,
): void {
  addProblems(errors, `/${variant}/store_paths`, store_paths, pathProblem);
  for (const [name, patterns] of Object.entries({ includes, excludes }))
    addProblems(errors, `/${variant}/${name}`, patterns ?? [], globProblem);
}

function addProblems(
  errors: FirstErrors,
  pointer: string,
  texts: readonly string[],
  problemOf: (text: string) => string | undefined,
): void {
  for (const [i, text] of texts.entries()) {
    const detail = problemOf(text);
    if (detail !== undefined) errors.add({ pointer: `${pointer}/${i}`, detail });
  }
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
