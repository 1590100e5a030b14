/** What an explanation knows about a job. Plain data that the controller gathers; all durations are in seconds. */
import type { JobReason, JobStatus, WorkerCounts } from "../../contracts/jobs.ts";
import type { ComputeFacts, ServerFacts, WorkerFacts } from "../facts.ts";
import type { Amount } from "../words.ts";

export interface JobWorkerFacts extends WorkerFacts {
  /** The oldest batch in hand, and for how long nothing was heard about it; undefined if it has none. */
  busy: { batch: number; forS: number } | undefined;
  /** How much of its time since its first batch it had none; undefined before that. */
  idleShare: number | undefined;
}

/** How fast the store delivers the input of batches. */
export interface InputFacts {
  bytes: number;
  /** Time in which something was being read, and since when there was anything to read. */
  readS: number;
  sinceS: number;
  /** There is nothing left to read. */
  isExhausted: boolean;
}

export interface FailureFacts {
  batches: number;
  firstBatch: number;
  type: string;
  /** Of the first batch. */
  message: string;
  /** What the messages of all have in common. */
  common: string;
  traceback: string;
}

export interface JobFacts {
  apiName: string;
  jobId: string;
  status: JobStatus;
  server: ServerFacts;
  compute: ComputeFacts;
  /** The API, the user, or a copy of the data directory. */
  paused: { by: "api" | "user" | "copy"; since: string } | undefined;
  /** It ends: only its manifest or its end is still to be written. */
  isEnding: boolean;
  /** What it waits for, as its status says it. */
  waiting: string | undefined;
  /** The last error of a store that it waits for. */
  storeError: string | undefined;
  phase: "none" | "preparing" | "enqueuing" | "dispatching";
  enqueuedBatches: number;
  /** Undefined while it is being enqueued. */
  total: number | undefined;
  succeeded: number;
  failedBatches: number;
  failedAttempts: number;
  /** Seconds that a successful batch takes on average; undefined if there was none. */
  averageS: number | undefined;
  workersAsked: number;
  counts: WorkerCounts;
  /** The compute of one worker; undefined if the version is gone. */
  need: Amount | undefined;
  workers: readonly JobWorkerFacts[];
  input: InputFacts | undefined;
  installingS: number | undefined;
  startupTimeoutS: number;
  /** `timeout`, and what is left of it; undefined without one. */
  timeout: { allS: number; leftS: number } | undefined;
  /** Failed batches by error, the most frequent first. */
  failures: readonly FailureFacts[];
  /** Messages that wait for its dead letter queue of SQS. */
  letters: { queue: string; messages: number; oldestS: number } | undefined;
  /** Why it ended, if it did not succeed. */
  reason: JobReason | undefined;
  /** What the last redrive of an ended job did; undefined if nobody redrove it, or its counts are not known. */
  redriven: { round: number; batches: number; succeeded: number; failed: number } | undefined;
  /** It has ended, and how long it took. */
  ended: { tookS: number } | undefined;
}
