/** Jobs one after the other, some at once, for as long as the attack lasts; each is checked when it has ended. */
import { setTimeout as pause } from "node:timers/promises";
import type { Attacker } from "./attacker.ts";
import { type ChaosDeps, ChaosJob } from "./job.ts";
import { planJob } from "./job-plan.ts";

const AT_ONCE = 2;
const POLL_MS = 250;
/** How likely a job is paused at a poll, and how likely a paused one is continued. */
const PAUSED = 0.05;
const CONTINUED = 0.3;
/** After the end of the attack nothing delays a job. */
const LAST_JOBS_MS = 180_000;

export class Jobs {
  batches = 0;
  outputs = 0;
  checked = 0;
  runAgain = 0;
  private readonly deps: ChaosDeps;
  private readonly random: () => number;
  private readonly current = new Set<ChaosJob>();
  private count = 0;
  private endsMs = Number.POSITIVE_INFINITY;
  private lanes: Promise<void>[] = [];

  constructor(deps: ChaosDeps, random: () => number) {
    this.deps = deps;
    this.random = random;
  }

  /** A worker that has begun a batch is ready: one that dies before that ends its job, as it should. */
  mayDie(pid: number): boolean {
    return [...this.current].some((job) => job.pids.has(pid));
  }

  start(attacker: Attacker): void {
    this.lanes = Array.from({ length: AT_ONCE }, () => this.lane(attacker));
  }

  async stop(): Promise<void> {
    this.endsMs = performance.now();
    await Promise.all(this.lanes);
  }

  private async lane(attacker: Attacker): Promise<void> {
    while (this.endsMs === Number.POSITIVE_INFINITY) await this.one(attacker);
  }

  /** No batch is lost or runs again because of a pause. In the end each job is continued. */
  private async pauseOrContinue(job: ChaosJob): Promise<void> {
    const isAttacked = this.endsMs === Number.POSITIVE_INFINITY;
    const dice = this.random();
    if (isAttacked && dice < PAUSED) await job.change("pause");
    else if (!isAttacked || dice > 1 - CONTINUED) await job.change("unpause");
  }

  private async one(attacker: Attacker): Promise<void> {
    const job = new ChaosJob(this.deps, this.count++, planJob(this.random));
    this.current.add(job);
    const startedMs = performance.now();
    await job.submit();
    while (!(await job.isEnded())) {
      if (performance.now() > this.endsMs + LAST_JOBS_MS)
        return this.deps.violations.add(`${job.describe()} does not end`);
      await this.pauseOrContinue(job);
      await pause(POLL_MS);
    }
    this.runAgain += await job.check(attacker.deaths(startedMs, job.pids));
    this.current.delete(job);
    this.checked++;
    this.batches += job.plan.fails.length;
    if (job.plan.place !== "none") this.outputs++;
  }
}
