/**
 * Decides what follows when a list or a watch has ended. Pure. No end leads to a request at once: after a restart of
 * the API server all its clients would come back together.
 */
import { ApiError } from "./api-error.ts";

export interface WatchTiming {
  /** The first pause after a failure, and the longest. Half of each pause is chance. */
  firstPauseMs: number;
  longestPauseMs: number;
  /** A watch that lived so long was healthy: pauses begin anew. */
  healthyMs: number;
  /** The API server sends a bookmark about each minute. A watch that is silent for longer is cut. */
  silentMaxMs: number;
  /** The API server ends a watch after about this time, up to twice as long, which is chance. */
  watchedMs: number;
}

export const WATCH_TIMING: WatchTiming = {
  firstPauseMs: 500,
  longestPauseMs: 30_000,
  healthyMs: 10_000,
  silentMaxMs: 90_000,
  watchedMs: 300_000,
};

export interface WatchEnd {
  /** Why it failed; undefined if the API server ended the watch as it should. */
  error: unknown;
  /** How long the watch was open; 0 for a list. */
  livedMs: number;
  /** How often in a row it ended too early before. */
  failures: number;
  /** From 0 to 1. */
  chance: number;
}

export interface NextWatch {
  listAgain: boolean;
  pauseMs: number;
  failures: number;
}

export function nextWatch({ error, livedMs, failures, chance }: WatchEnd, timing: WatchTiming): NextWatch {
  const isHealthy = livedMs >= timing.healthyMs;
  const before = isHealthy ? 0 : failures;
  const backOffMs = Math.min(timing.longestPauseMs, timing.firstPauseMs * 2 ** Math.min(before, 20));
  const askedMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  return {
    listAgain: error instanceof ApiError && error.isExpired,
    // Whoever is asked to wait does not come back at the same instant as all others.
    pauseMs: Math.max(askedMs * (1 + chance / 2), backOffMs * (0.5 + chance / 2)),
    failures: isHealthy ? 0 : before + 1,
  };
}
