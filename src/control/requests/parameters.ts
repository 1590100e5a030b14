/** The parameters in a request's address. */

import type { Context } from "hono";
import { quotedBeginning } from "../../base/printable.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, SEARCH_LENGTH_MAX } from "../../contracts/limits/responses.ts";

/** The checked `?limit=`. */
export function limitOf(c: Context): number {
  const text = c.req.query("limit");
  if (text === undefined) return LIST_LIMIT_DEFAULT;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit;
  throw new ServiceError(
    "invalid_request",
    `limit must be an integer from 1 to ${LIST_LIMIT_MAX} (got ${quotedBeginning(text)})`,
  );
}

/** The checked `?search=`; undefined if it is empty, too. */
export function searchOf(c: Context): string | undefined {
  const text = c.req.query("search") ?? "";
  if (text.length > SEARCH_LENGTH_MAX)
    throw new ServiceError(
      "invalid_request",
      `search must have at most ${SEARCH_LENGTH_MAX} characters (got ${text.length})`,
    );
  return text === "" ? undefined : text;
}

/**
 * Reads a parameter that changes an action. A value that is neither true nor false is refused, and does not count as
 * false.
 */
export function flag(c: Context, name: string): boolean {
  const text = c.req.query(name);
  if (text === undefined || /^(0|f|false)$/i.test(text)) return false;
  if (isTrue(text)) return true;
  throw new ServiceError("invalid_request", `${name} must be true or false (got "${text.slice(0, 40)}")`);
}

export function isTrue(text: string | undefined): boolean {
  return text !== undefined && /^(1|t|true)$/i.test(text);
}
