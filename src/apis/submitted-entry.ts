/** The entry of a configuration that a version was deployed from, without the defaults that it did not spell out. */
import { isDeepStrictEqual } from "node:util";
import { parseExact } from "../base/json-text.ts";
import { apiSchema } from "../contracts/apis.ts";
import { type AnyVersion, exactSpec } from "./api-store.ts";

/** No path of a predictor, so that it is never taken for a default. */
const NO_PATH = " ";

/** With every number as it was written. Of a version that was saved without its entry, what differs from the defaults. */
export function submittedEntry(version: AnyVersion): unknown {
  if (version.submitted !== undefined) return parseExact(version.submitted);
  const { name, kind, ...rest } = exactSpec(version) as AnyVersion["config"];
  const least = rest.predictor === undefined ? {} : { predictor: { path: NO_PATH } };
  return { name, kind, ...without(rest, apiSchema.parse({ name: "any", kind, ...least })) };
}

/** The members that are not as in `defaults`, at any depth. */
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
