/** What an explanation of a time in the past knows: steps of the series, and what changed. Plain data; Unix seconds. */

/** What happened in one minute or hour. */
export interface PastStepFacts {
  startS: number;
  requests: number;
  /** Those with status 5xx. */
  errors: number;
  /** Refused by the gateway, by error code. */
  rejected: Readonly<Record<string, number>>;
  /** Counts by bucket (contracts/reports.ts): of whole requests, and of their wait for a replica. */
  durations: readonly number[];
  waits: readonly number[];
  /** At the end of the step; null if nothing is known. */
  replicas: number | null;
  /** The most at once. */
  queueDepth: number | null;
  /** The most CPUs that the whole server had reserved at once. */
  cpus: number | null;
}

export interface PastChange {
  atS: number;
  kind: "deployed" | "rolled_back" | "replica_ended";
  times: number;
  /** Of a version: its id. Of replicas: how the last one ended. */
  detail: string;
  /** The version before; null if there was none. */
  former: string | null;
  /** Who deployed it or went back to it; null if nobody is known. */
  by: string | null;
}

/** A round of a job. */
export interface PastJob {
  apiName: string;
  jobId: string;
  workers: number;
  round: number;
  startedS: number;
  endedS: number | null;
}

export interface PastFacts {
  name: string;
  /** The time that somebody asks about. */
  atS: number;
  nowS: number;
  /** The length of a step: 60, or 3600 if minutes are no longer kept. */
  stepS: number;
  /** In order and without gaps: hours before `atS`, and a while after it. */
  steps: readonly PastStepFacts[];
  changes: readonly PastChange[];
  /** Rounds of jobs of all APIs that started in the time of the steps. */
  jobs: readonly PastJob[];
  /** The exceptions that the API's log has of that time, the most frequent first. */
  exceptions: readonly { text: string; count: number }[];
}
