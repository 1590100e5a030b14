/** One line of the table of limits, and the usual forms of it. */
import type { ErrorCode } from "../errors.ts";

export interface LimitRow {
  what: string;
  most: string;
  /** Undefined if Node itself responds. */
  error: ErrorCode | undefined;
  /** Undefined if the connection is closed. */
  status: number | undefined;
  /** What happens instead of a response. */
  effect?: string;
}

export interface LimitGroup {
  title: string;
  rows: readonly LimitRow[];
}

export const bytes = (count: number) => `${count} bytes`;
export const invalid = (what: string, most: string, error: ErrorCode = "invalid_request"): LimitRow => ({
  ...{ what, most, error },
  status: 400,
});
export const unavailable = (what: string, most: string, error: ErrorCode = "queue_full"): LimitRow => ({
  ...{ what, most, error },
  status: 503,
});
export const undeployed = (what: string, most: string) => invalid(what, most, "invalid_configuration");
export const closed = (what: string, most: string): LimitRow => ({
  ...{ what, most },
  error: undefined,
  status: undefined,
});
