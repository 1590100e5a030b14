/** Removes the wrong values of an entry, so that the rest can still be checked. Pure. */
import type * as z from "zod";

type Issue = z.core.$ZodIssue;
type Part = string | number;

/** A copy without the values that the issues are about. */
export function withoutFaults(entry: unknown, issues: readonly Issue[]): unknown {
  const copy = structuredClone(entry);
  for (const issue of issues) {
    const path = issue.path as Part[];
    const keys = issue.code === "unrecognized_keys" ? issue.keys : undefined;
    for (const whole of keys === undefined ? [path] : keys.map((key) => [...path, key])) remove(copy, whole);
  }
  return copy;
}

/** Removes a whole list if one of its elements is wrong: without that element it would mean something else. */
function remove(root: unknown, path: readonly Part[]): void {
  const end = path.findIndex((part) => typeof part === "number");
  const named = end < 0 ? path : path.slice(0, end);
  const last = named.at(-1);
  const holder = named
    .slice(0, -1)
    .reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), root);
  if (last !== undefined && isObject(holder)) delete holder[last];
}

function isObject(value: unknown): value is Record<Part, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
