/** Pauses and continues jobs, one by one or all of an API. It survives restarts (records/paused-jobs.ts). */
import { contain } from "../base/boundary.ts";
import { timestamp, wallMs } from "../base/clock.ts";
import { FewEachTurn } from "../base/loop/turns.ts";
import { ServiceError } from "../contracts/errors.ts";
import { JOBS_BEGUN_AT_ONCE_MAX } from "../contracts/limits/jobs.ts";
import type { JobDeps } from "./job-deps.ts";
import type { JobRow } from "./records/job-rows.ts";
import { type Paused, pauseJob, pauseJobsOf, unpause } from "./records/paused-jobs.ts";
import type { RunsInProgress } from "./runs-in-progress.ts";

export class Pauses {
  private readonly deps: JobDeps;
  private readonly runs: RunsInProgress;
  /** An API may have thousands of jobs. Those that go on and those that leave are in one line, as they were asked to. */
  private readonly later: FewEachTurn;

  constructor(deps: JobDeps, runs: RunsInProgress) {
    this.deps = deps;
    this.runs = runs;
    this.later = new FewEachTurn("a job that is paused or continued", JOBS_BEGUN_AT_ONCE_MAX);
  }

  /** No new batch of the job begins; those in hand end. Throws `wrong_state` if the job ends or has ended. */
  async pause({ job_id, status, closing }: JobRow): Promise<void> {
    if (!(await pauseJob(this.deps.db, job_id, timestamp())))
      throw new ServiceError(
        "wrong_state",
        `job ${job_id} cannot be paused: it has ended (${closing ?? status})`,
      );
    this.deps.jobLog(job_id, "paused: no new batch begins");
    this.leave(job_id);
  }

  /** Throws `wrong_state` if the job is not paused, or is paused with its API. */
  async unpause({ job_id, api_name, paused }: JobRow): Promise<void> {
    if (paused === "api")
      throw new ServiceError(
        "wrong_state",
        `job ${job_id} is paused with its API; \`quern unpause ${api_name}\` continues all its jobs`,
      );
    if ((await this.goOn({ jobId: job_id })) === 0)
      throw new ServiceError("wrong_state", `job ${job_id} is not paused`);
  }

  /** Continues all that are paused, but for those whose API is. Resolves to their number. */
  async unpauseAll(): Promise<number> {
    const count = await this.goOn({ causes: ["copy", "user"] });
    this.deps.onLetters();
    return count;
  }

  /** No new batch of the API's jobs begins, nor of those that are submitted later. Throws `api_not_found`. */
  async pauseApi(api: string): Promise<number> {
    const now = timestamp();
    const ids = await this.deps.db.transaction(async (tx) => {
      const since = await this.deps.assertDeployed(tx, api);
      if (since === null) await this.deps.setApiPaused(tx, api, now);
      return pauseJobsOf(tx, api, now);
    });
    for (const id of ids) this.leave(id);
    return ids.length;
  }

  /** Continues the jobs that were paused with their API. Throws `api_not_found`. */
  unpauseApi(api: string): Promise<number> {
    return this.goOn({ pausedWithApi: api });
  }

  private async goOn(which: Paused): Promise<number> {
    const ids = await this.deps.db.transaction(async (tx) => {
      if ("pausedWithApi" in which) await this.deps.setApiPaused(tx, which.pausedWithApi, null);
      return unpause(tx, which, wallMs());
    });
    for (const id of ids) this.later.add(() => this.begin(id));
    return ids.length;
  }

  private begin(jobId: string): void {
    this.deps.jobLog(jobId, "no longer paused");
    contain("a job that is continued", () => this.runs.begin(jobId));
  }

  private leave(jobId: string): void {
    this.later.add(() =>
      contain("a job that is paused", async () => (await this.runs.begun(jobId))?.pause()),
    );
  }
}
