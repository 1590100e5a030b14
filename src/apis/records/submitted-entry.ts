/** The configuration entry from which a version was deployed, without defaults that it did not mention. */
import { isDeepStrictEqual } from "node:util";
import { parseExact, stringifyExact } from "../../base/json/exact.ts";
import { apiSchema } from "../../contracts/config/apis.ts";
import { type AnyVersion, exactSpec } from "./api-rows.ts";

/** A path that no predictor has, so that no submitted path equals the default. */
const NO_PATH = " ";

/**
 * The entry, with every number as it was written. A version that was saved without its entry gives the values that
 * differ from the defaults.
 */
export function submittedEntry(version: AnyVersion): unknown {
  if (version.submitted !== undefined) return parseExact(version.submitted);
  const { name, kind, ...rest } = exactSpec(version) as AnyVersion["config"];
  const least = rest.predictor === undefined ? {} : { predictor: { path: NO_PATH } };
  return { name, kind, ...without(rest, apiSchema.parse({ name: "any", kind, ...least })) };
}

/** The same as JSON text. */
export function submittedText(version: AnyVersion): string {
  return version.submitted ?? stringifyExact(submittedEntry(version));
}

/** The members that differ from `defaults`, at any depth. */
function without(value: object, defaults: object): Record<string, unknown> {
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const other = (defaults as Record<string, unknown>)[name];
    if (isDeepStrictEqual(member, other)) return [];
    return [[name, isMap(member) && isMap(other) ? without(member, other) : member]];
  });
  return Object.fromEntries(members);
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
