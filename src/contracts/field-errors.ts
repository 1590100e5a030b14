/**
 * Turns zod's issues into field errors. Each names what was given, what is allowed and, for unknown keys, the nearest
 * legal one.
 */
import type * as z from "zod";
import { ERRORS_SHOWN_MAX, QUOTED_LENGTH_MAX } from "./limits/responses.ts";
import { FirstErrors } from "./validation/first-errors.ts";
import { othersOf } from "./validation/text-list.ts";

/** A longer word is not a mistyped key. */
const WORD_LENGTH_MAX = 64;

type Issue = z.core.$ZodIssue;

export interface NamedIssue {
  path: readonly (string | number)[];
  detail: string;
}

type LegalKeys = (path: readonly PropertyKey[]) => readonly string[];

/**
 * Makes one entry per problem, when it is asked for, so that an object with three unknown keys gives three. Only entries
 * that are shown get a hint.
 */
export function* namedIssues(
  issues: readonly Issue[],
  input: unknown,
  legalKeys: LegalKeys,
): Generator<NamedIssue> {
  for (const issue of wrongKeysFirst(issues, input)) {
    const path = issue.path as (string | number)[];
    if (issue.code === "unrecognized_keys") yield* unknownKeys(path, issue.keys, legalKeys(path));
    else if (othersOf(issue) === undefined) yield { path, detail: wrongValue(issue, valueAt(input, path)) };
  }
}

function* unknownKeys(
  path: NamedIssue["path"],
  keys: readonly string[],
  legal: readonly string[],
): Generator<NamedIssue> {
  for (const [at, key] of keys.entries())
    yield {
      path: [...path, key],
      detail: at < ERRORS_SHOWN_MAX ? unknownKey(key, legal) : "is not supported",
    };
}

function wrongValue({ message }: Issue, given: unknown): string {
  return given === undefined ? `is required (${message})` : `${message} (got ${shortJson(given)})`;
}

/** Makes only the first entries, and counts the others: there may be tens of thousands. */
export function firstErrors(issues: readonly Issue[], input: unknown, legalKeys: LegalKeys): FirstErrors {
  const errors = new FirstErrors();
  for (const { path, detail } of namedIssues(issues, input, legalKeys)) {
    if (errors.total === ERRORS_SHOWN_MAX) break;
    errors.add({ pointer: toPointer(path), detail });
  }
  errors.total = issues.reduce((sum, issue) => sum + problemsOf(issue), 0);
  return errors;
}

/** For how many problems an issue stands. */
function problemsOf(issue: Issue): number {
  return issue.code === "unrecognized_keys" ? issue.keys.length : (othersOf(issue) ?? 1);
}

/** Puts an object's wrong key before its missing keys: the wrong key usually is a missing one, mistyped. */
function wrongKeysFirst(issues: readonly Issue[], input: unknown): Issue[] {
  const wrongKeys = new Map<string, Issue>();
  for (const issue of issues)
    if (issue.code === "unrecognized_keys") wrongKeys.set(JSON.stringify(issue.path), issue);
  return issues.flatMap((issue) => {
    const isWrongKey = issue.code === "unrecognized_keys";
    const object = JSON.stringify(isWrongKey ? issue.path : issue.path.slice(0, -1));
    const first = wrongKeys.get(object);
    if (isWrongKey) return wrongKeys.delete(object) ? [issue] : [];
    if (first === undefined || valueAt(input, issue.path) !== undefined) return [issue];
    wrongKeys.delete(object);
    return [first, issue];
  });
}

function toPointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function unknownKey(key: string, legal: readonly string[]): string {
  const nearest = nearestWord(key, legal);
  const hint = nearest === undefined ? `; legal keys: ${legal.join(", ")}` : `; did you mean "${nearest}"?`;
  return `key "${key}" is not supported${hint}`;
}

/** Finds the legal word whose edit distance is at most a third of the given word's length. */
function nearestWord(word: string, legal: readonly string[]): string | undefined {
  if (word.length > WORD_LENGTH_MAX) return undefined;
  const ranked = legal
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(1, Math.floor(word.length / 3))
    ? best.candidate
    : undefined;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(previous[j]! + 1, current[j - 1]! + 1, substitution));
    }
    previous = current;
  }
  return previous[b.length]!;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

const SHOWN_CHARACTERS = 60;
const SHOWN_DEPTH = 4;

/**
 * Returns the beginning of a value as JSON. It reads only the part that is shown: a value may be deep, or have
 * megabytes.
 */
function shortJson(value: unknown): string {
  const text = beginningOf(value, SHOWN_DEPTH);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS - 3)}...`;
}

function beginningOf(value: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, SHOWN_CHARACTERS));
  // JSON has no infinity: the caller wrote a number that is too large for a float.
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? String(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? "[]" : "{}";
  if (depth === 0) return `${open}...`;
  const shown: string[] = [];
  for (const name in value) {
    if (shown.length === SHOWN_CHARACTERS) break;
    const member = beginningOf((value as Record<string, unknown>)[name], depth - 1);
    shown.push(isList ? member : `${JSON.stringify(name.slice(0, SHOWN_CHARACTERS))}:${member}`);
  }
  return `${open}${shown.join(",")}${close}`;
}

/** Quotes a caller's text in a message, and cuts it if it is long. */
export function quoted(text: string): string {
  return text.length <= QUOTED_LENGTH_MAX ? `"${text}"` : `"${text.slice(0, QUOTED_LENGTH_MAX)}…"`;
}

/**
 * The legal keys of the object at `path`. A union has the keys of all its forms. All elements of a list have the same
 * keys.
 */
export function legalKeysOf(schema: unknown, path: readonly PropertyKey[]): string[] {
  let forms = formsOf(schema);
  for (const part of path.filter((name) => typeof name !== "number"))
    forms = forms.flatMap((form) => formsOf(form.shape?.[String(part)]));
  return [...new Set(forms.flatMap((form) => Object.keys(form.shape ?? {})))];
}

interface Form {
  shape?: Record<string, unknown>;
  options?: readonly unknown[];
  unwrap?: () => unknown;
}

/** The objects that a schema may be, with defaults and options unwrapped. */
function formsOf(schema: unknown): Form[] {
  const form = schema as Form | undefined;
  if (form === undefined || form.shape !== undefined) return form === undefined ? [] : [form];
  if (form.options !== undefined) return form.options.flatMap(formsOf);
  return typeof form.unwrap === "function" ? formsOf(form.unwrap()) : [];
}
