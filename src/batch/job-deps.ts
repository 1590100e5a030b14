/** The parts of the controller that a run of a job needs. */

import type { ReachKillPoint } from "../base/kill-points.ts";
import type { Log } from "../base/log.ts";
import type { Database, Statements } from "../database/database.ts";
import type { RunningWorker } from "../engine/engine.ts";
import type { Lifetime } from "../engine/lifetime.ts";
import type { OpenFiles } from "../engine/open-files.ts";
import type { Reservation } from "../engine/reservations.ts";
import type { Compute } from "../engine/scheduler/compute.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import type { Init } from "../protocol/messages.ts";
import type { Solitude } from "./dispatch/solitude.ts";
import type { NamedQueue } from "./letters/queue-turns.ts";
import type { ItemsStore } from "./records/items-file.ts";
import type { WarmWorkers } from "./warm/warm-workers.ts";
import type { JobCompute } from "./workers/job-compute.ts";

/** The API version that a job was submitted to, as far as a job needs it. */
export interface JobApi {
  api_id: string;
  init: Omit<Init, "job_config" | "job_spec">;
  /** `predictor.timeout` in milliseconds; undefined is none. */
  timeoutMs: number | undefined;
  /** How long its workers may start, and when they are replaced. */
  lifetime: Lifetime;
  /** The compute that one worker reserves. */
  compute: Compute;
  /** `predictor.reuse_worker`. */
  reusesWorkers: boolean;
}

export interface JobDeps {
  db: Database;
  store: ObjectStore;
  dataDir: string;
  /** What of these is on the disk of the data directory, of which jobs leave a part free. */
  isOnDisk: { outputs: boolean; database: boolean };
  /** Where jobs keep their items. */
  items: ItemsStore;
  /** The database belongs to this data directory, so files that it does not know are garbage. */
  knowsFiles: boolean;
  epoch: number;
  log: Log;
  reach: ReachKillPoint;
  /** Aborted when the controller stops. */
  stopping?: AbortSignal;
  /** Where workers get their compute. Those that do not fit wait. */
  computeFor: (jobId: string) => JobCompute;
  /** The descriptors of this process. Workers for which there is none wait. */
  openFiles: OpenFiles;
  solitude: Solitude;
  /**
   * In the transaction that begins a round of a job: throws `api_not_found` if the API is deleted, and resolves to the
   * time since when it is paused, or null.
   */
  assertDeployed: (tx: Statements, apiName: string) => Promise<string | null>;
  /** Records since when an API is paused; null: it is not. Throws `api_not_found`. */
  setApiPaused: (tx: Statements, apiName: string, time: string | null) => Promise<void>;
  findApi: (apiName: string, apiId: string) => Promise<JobApi>;
  /**
   * Installs what the API requires, then starts a worker process and records it. Throws EnvironmentError if the
   * installation fails.
   */
  startWorker: (
    job: { api_name: string; api_id: string; job_id: string },
    reservation: Reservation,
  ) => Promise<RunningWorker>;
  /** Records that a process of the version works for this job from now on. Resolves to the file for its output. */
  takeOverWorker: (process: RunningWorker, jobId: string) => Promise<string>;
  /** Processes between two jobs. */
  warmWorkers: WarmWorkers;
  /** Deletes the record of a worker that is gone. */
  forgetWorker: (workerId: string) => Promise<void>;
  /** Whether a dead letter queue certainly does not exist. */
  isQueueMissing: (queue: string) => Promise<boolean>;
  /** Whether writes below this address can have conditions. Throws the store's error if it may not be written there. */
  hasConditions: (prefix: string) => Promise<boolean>;
  /** Messages for a queue of SQS are durable, and may be sent; without a queue, those for any. */
  onLetters: (named?: NamedQueue) => void;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
}
