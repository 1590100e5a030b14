/** Brings the objects of jobs in the cluster to what their workers need, and removes those that nobody needs. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { inBackground } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import {
  APPLY_PAUSE_FIRST_MS,
  APPLY_PAUSE_MAX_MS,
  JOB_IDLE_MS,
} from "../../contracts/limits/kubernetes/pods.ts";
import type { JobPods } from "../../kubernetes/objects/worker-pods.ts";
import type { JobPodSet } from "./job-pod-set.ts";
import type { JobPodsWriter } from "./job-pods-writer.ts";

export interface JobObjectsDeps {
  log: Log;
  writer: JobPodsWriter;
  /** The pods of a job, as many as its submission asks for; undefined if the job or its version is gone. */
  podsOf: (jobId: string) => Promise<JobPods | undefined>;
  /** Nothing of the job is in the cluster any more. */
  forget: (jobId: string) => void;
  /** Aborted when the server shuts down: its Jobs stay for the next one. */
  leaving: AbortSignal;
}

export class JobObjects {
  private readonly deps: JobObjectsDeps;
  /** The jobs whose objects are being brought to what they should be; true: once more. */
  private readonly busy = new Map<string, boolean>();

  constructor(deps: JobObjectsDeps) {
    this.deps = deps;
  }

  /** Returns at once. */
  bring(set: JobPodSet): void {
    if (this.busy.has(set.jobId)) this.busy.set(set.jobId, true);
    else inBackground(this.untilBrought(set));
  }

  /** One at a time for each job, again while it changes, and with growing pauses while the cluster refuses. */
  private async untilBrought(set: JobPodSet): Promise<void> {
    const { jobId } = set;
    let pauseMs = 0;
    this.busy.set(jobId, false);
    // Workers ask one after the other.
    await nextTurn();
    do {
      this.busy.set(jobId, false);
      try {
        await this.bringOnce(set);
        set.refused = undefined;
        pauseMs = 0;
      } catch (error) {
        set.refused = (error as Error).message;
        this.deps.log.warn(
          { event: "cluster_failed", err: error, job_id: jobId },
          "a Job could not be applied",
        );
        pauseMs = Math.min(APPLY_PAUSE_MAX_MS, Math.max(APPLY_PAUSE_FIRST_MS, 2 * pauseMs));
        this.busy.set(jobId, true);
        await delay(pauseMs);
      }
    } while (this.busy.get(jobId) && !this.deps.leaving.aborted);
    this.busy.delete(jobId);
  }

  private async bringOnce(set: JobPodSet): Promise<void> {
    const { jobId, wanted } = set;
    if (this.deps.leaving.aborted) return;
    if (wanted === 0) return this.removeIdle(set);
    if (set.jobUid === undefined) {
      const pods = await this.deps.podsOf(jobId);
      if (pods === undefined) return;
      const ofOwn = set.isHeldBack ? 0 : wanted;
      const parallelism = pods.queue === undefined ? ofOwn : pods.parallelism;
      set.hasObjects = true;
      set.jobUid = await this.deps.writer.make({ ...pods, parallelism });
      set.parallelism = parallelism;
      set.queue = pods.queue;
      return;
    }
    const parallelism = set.parallelismAt(performance.now());
    if (set.parallelism === parallelism) return;
    await this.deps.writer.resize(jobId, parallelism);
    set.parallelism = parallelism;
  }

  private async removeIdle(set: JobPodSet): Promise<void> {
    if (performance.now() - set.idleSinceMs < JOB_IDLE_MS) return;
    if (set.hasObjects) await this.deps.writer.remove(set.jobId);
    Object.assign(set, { jobUid: undefined, hasObjects: false });
    if (set.wanted > 0) this.busy.set(set.jobId, true);
    else if (set.pods.size === 0) this.deps.forget(set.jobId);
  }
}
