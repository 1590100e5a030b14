/** Who asks the scheduler for compute, and who holds some (docs/decisions/0030-scheduler.md). */
import type { Compute } from "./compute.ts";

/** Replicas come before all jobs, whose priority is at most 100. */
export const LIVE_PRIORITY = 1_000;

export interface Claimant {
  /** Its name in messages to others that wait. */
  readonly holder: string;
  readonly priority: number;
  /** The API whose replicas or jobs it has, in messages. */
  readonly apiName: string;
  /** Names the API, or the application, and its priority. */
  readonly api: string;
  /** Names the job, its API and its priority. */
  readonly job: string;
  /** Its workers can be asked to yield, so what they hold comes back before long. */
  readonly isPassing: boolean;
}

/** The replicas of a real-time API. */
export function replicasOf(api: string): Claimant {
  return claimant(`API ${api}`, LIVE_PRIORITY, api, api, false);
}

/** The workers of a job. */
export function workersOf(job: string, api: string, priority: number): Claimant {
  return claimant(`job ${job} of ${api}`, priority, api, job, true);
}

/** The stages of an application. They share like a job of priority 0, and cannot be asked to yield. */
export function stagesOf(app: string): Claimant {
  const holder = `application ${app}`;
  return claimant(holder, 0, holder, holder, false);
}

function claimant(
  holder: string,
  priority: number,
  apiName: string,
  job: string,
  isPassing: boolean,
): Claimant {
  const api = `${priority} ${apiName}`;
  return { holder, priority, apiName, api, job: `${api} ${job}`, isPassing };
}

/** Compute that somebody waits for: for one worker, or for all workers of a replica at once. */
export interface Claim {
  readonly by: Claimant;
  readonly need: Compute;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

/** Compute that somebody has. */
export interface Holding {
  readonly by: Claimant;
  readonly compute: Compute;
  /** From when on its worker may be asked to yield; infinity while it may not. */
  readonly yieldsFromMs: number;
  /** It has been asked to yield. */
  readonly isYielding: boolean;
}
