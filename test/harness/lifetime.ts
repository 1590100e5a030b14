import type { Lifetime } from "../../src/engine/lifetime.ts";

/** Of a worker that is never replaced, and may start for a minute. */
export const LONG_LIFE: Lifetime = {
  startup: { ms: 60_000, text: "1m" },
  maxRequests: undefined,
  maxAgeMs: undefined,
};
