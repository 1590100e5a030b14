/** What the workers of one job need from the controller and the job's run. */
import type { DiskWait } from "../../base/disk-full.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import type { Lifetime } from "../../engine/lifetime.ts";
import type { Reservation } from "../../engine/reservations.ts";
import type { Init } from "../../protocol/messages.ts";
import type { OpenRows } from "../deliveries/deliveries.ts";
import type { EndCause } from "../records/job-status.ts";
import type { WarmPlace } from "../warm/warm-workers.ts";
import type { WorkerLogOptions } from "./worker-log.ts";
import type { ReservationOptions } from "./worker-reservations.ts";

export interface JobWorkersOptions extends ReservationOptions, WorkerLogOptions {
  epoch: number;
  /** How to wait if the disk has no space for a worker's log. */
  diskWait: DiskWait;
  start: (reservation: Reservation) => Promise<RunningWorker>;
  forget: (workerId: string) => Promise<void>;
  /** Where processes come from and go to that work for several jobs; undefined if none does. */
  warm: WarmPlace | undefined;
  /** Records that a process works for this job from now on. Resolves to the file that gets its output. */
  takeOver: (process: RunningWorker) => Promise<string>;
  init: (totalBatches: number | undefined) => Promise<Init>;
  /** How long workers may start, and when they are replaced. */
  lifetime: Lifetime;
  /** Where the rows of a worker go; undefined if the job has no output. */
  openRows?: OpenRows | undefined;
  /** Ends the job, because a worker could not be started or set up. */
  end: (cause: EndCause) => void;
  /** Receives internal errors that no other callback reports. */
  onFault: (error: Error) => void;
}
