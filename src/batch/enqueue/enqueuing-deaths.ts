/**
 * Jobs whose enqueuing kills the controller, such as by its memory. The database counts how often in a row a controller
 * died in a job's turn that got no further. At first, each job that is being enqueued then is a suspect. A suspect is
 * enqueued beside no other one, so that only the count of the guilty job grows on.
 *
 * The rule: docs/contract/jobs.md#deaths-while-enqueuing
 */
import {
  ENQUEUING_DEATHS_BESIDE_OTHERS,
  ENQUEUING_DEATHS_MAX,
  ENQUEUING_SURVIVED_MS,
} from "../../contracts/limits/jobs.ts";
import type { Statements } from "../../database/database.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import type { JobRow } from "../records/job-rows.ts";

/** A job as its controller claimed it. */
type ClaimedJob = Pick<JobRow, "job_id" | "start_time" | "enqueuing_deaths">;

export function isSuspect({ enqueuing_deaths }: ClaimedJob): boolean {
  return enqueuing_deaths >= ENQUEUING_DEATHS_BESIDE_OTHERS;
}

export class EnqueuingDeaths {
  private readonly db: Statements;
  private readonly epoch: number;
  private readonly job: ClaimedJob;
  /** When the turn began whose death is counted. */
  private countedMs: number | undefined;

  constructor(db: Statements, epoch: number, job: ClaimedJob) {
    this.db = db;
    this.epoch = epoch;
    this.job = job;
  }

  /**
   * Counts a death before a turn begins; each commit of segments sets the count to 0. No write is spent on a job that no
   * controller had before. Throws EnqueueError if there were too many deaths.
   */
  async turnBegins(): Promise<void> {
    if (this.job.start_time === null) return;
    if (this.job.enqueuing_deaths >= ENQUEUING_DEATHS_MAX) throw tooDeadly();
    await this.add(1);
    this.countedMs = performance.now();
  }

  /** Whether the controller has lived so long in this turn that the job is hardly the cause of its deaths. */
  isSurvived(nowMs: number): boolean {
    return this.countedMs !== undefined && nowMs - this.countedMs >= ENQUEUING_SURVIVED_MS;
  }

  /** The turn is over or survived, or the controller stops: it did not die. */
  async turnIsOver(): Promise<void> {
    if (this.countedMs === undefined) return;
    this.countedMs = undefined;
    await this.add(-1);
  }

  private async add(change: number): Promise<void> {
    const { epoch, job } = this;
    await this.db.run(
      `UPDATE jobs SET enqueuing_deaths = enqueuing_deaths + ?
       WHERE job_id = ? AND epoch = ? AND enqueuing_deaths + ? >= 0`,
      [change, job.job_id, epoch, change],
    );
  }
}

function tooDeadly(): EnqueueError {
  return new EnqueueError(
    "controller_died",
    `the controller died at least ${ENQUEUING_DEATHS_MAX} times in a row while it enqueued this job, and got no further`,
    "the server's log says what ended it, such as too little memory; correct that, then continue with `quern job resume API JOB`",
  );
}
