/** What follows when all batches are settled: `on_job_complete` on one worker, the rest of the output, the end. */
import { contain } from "../base/boundary.ts";
import type { JobOutput } from "./output/job-output.ts";
import type { RunOfJob } from "./phase.ts";
import { completionFailed } from "./records/job-reasons.ts";
import type { JobRow } from "./records/job-rows.ts";
import type { BatchWorker } from "./workers/batch-worker.ts";
import type { JobWorkers } from "./workers/job-workers.ts";

type CompletingRun = Pick<RunOfJob, "isEnding" | "endSoon" | "failOutput" | "unexpected"> & {
  job: Pick<JobRow, "round">;
  output: Pick<JobOutput, "finish"> | undefined;
};
type CompletingWorkers = Pick<JobWorkers, "startMissing"> & {
  ready(): Pick<BatchWorker, "hasOnJobComplete" | "completeJob">[];
};

export class Completion {
  private readonly run: CompletingRun;
  private readonly workers: CompletingWorkers;
  /** Until the end. A worker that becomes ready meanwhile asks again. */
  private hasBegun = false;

  constructor(run: CompletingRun, workers: CompletingWorkers) {
    this.run = run;
    this.workers = workers;
  }

  /** May be called again at any time, and has to be when a worker is ready. */
  soon(): void {
    contain(
      "a job",
      () => this.complete(),
      (error) => this.run.unexpected(error),
    );
  }

  private async complete(): Promise<void> {
    if (this.hasBegun || this.run.isEnding) return;
    const [worker] = this.workers.ready();
    // Only a ready worker knows whether there is a hook; one is being started.
    if (worker === undefined) return this.workers.startMissing();
    this.hasBegun = true;
    const fault = worker.hasOnJobComplete ? await worker.completeJob(this.run.job.round) : undefined;
    if (fault === "died") {
      this.hasBegun = false;
      return;
    }
    if (!(await this.finishOutput())) return;
    this.run.endSoon(
      fault === undefined ? { kind: "settled" } : { kind: "worker_error", reason: completionFailed(fault) },
    );
  }

  /** False if the rest of the output could not be written: the job ends for that then. */
  private async finishOutput(): Promise<boolean> {
    try {
      await this.run.output?.finish();
      return true;
    } catch (error) {
      this.run.failOutput(error as Error);
      return false;
    }
  }
}
