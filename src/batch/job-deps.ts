/** What a run of a job needs from the rest of the controller. */

import type { ReachKillPoint } from "../base/kill-points.ts";
import type { Log } from "../base/log.ts";
import type { Database } from "../database/database.ts";
import type { Compute, ComputeAccount } from "../engine/compute-account.ts";
import type { RunningWorker } from "../engine/engine.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import type { Init } from "../protocol/messages.ts";
import type { Solitude } from "./solitude.ts";

/** The API version that a job was submitted to, as far as a job needs it. */
export interface JobApi {
  api_id: string;
  init: Omit<Init, "job_config" | "job_spec">;
  /** `predictor.timeout` in milliseconds; undefined is none. */
  timeoutMs: number | undefined;
  /** What one worker takes of the account. */
  compute: Compute;
}

export interface JobDeps {
  db: Database;
  store: ObjectStore;
  dataDir: string;
  /** The database has known this directory before: what it does not know there is waste. */
  knowsFiles: boolean;
  epoch: number;
  log: Log;
  reach: ReachKillPoint;
  /** What the machine has to give: workers that it has no room for wait. */
  account: ComputeAccount;
  solitude: Solitude;
  findApi: (apiName: string, apiId: string) => Promise<JobApi>;
  /** Installs what the API requires, then starts a worker process and records it. EnvironmentError when it cannot. */
  startWorker: (
    apiName: string,
    apiId: string,
    jobId: string,
    gpus: readonly string[],
  ) => Promise<RunningWorker>;
  /** The worker is gone: its record can go. */
  forgetWorker: (workerId: string) => Promise<void>;
  /** Whether a dead letter queue is certainly not there. */
  isQueueMissing: (queue: string) => Promise<boolean>;
  /** Letters are durable: those for SQS may be sent. */
  onLetters: () => void;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
}
