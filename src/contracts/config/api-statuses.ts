/** The statuses of an API, as `quern get` and the control plane show them. */

/** docs/contract/command-line.md#api-statuses: an API that is scaled to zero is `live`. */
export const API_STATUSES = [
  "live",
  "updating",
  "error",
  "error (out of memory)",
  "compute unavailable",
] as const;
export type ApiStatus = (typeof API_STATUSES)[number];
