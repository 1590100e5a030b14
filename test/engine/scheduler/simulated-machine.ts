/**
 * A machine with 10 CPUs whose time is simulated: jobs come, their workers start, work off batches and yield between two
 * of them. Only the scheduler is real.
 */
import { type Claim, type Claimant, type Holding, workersOf } from "../../../src/engine/scheduler/claims.ts";
import { minus } from "../../../src/engine/scheduler/compute.ts";
import { schedule } from "../../../src/engine/scheduler/schedule.ts";
import type { Deficits } from "../../../src/engine/scheduler/shares.ts";

/** Seconds between two rounds while somebody waits; one follows each change, too. */
const STEP = 0.5;

export interface JobSpec {
  api: string;
  name: string;
  workers: number;
  cpus: number;
  batches: number;
  batchSeconds: number;
  startSeconds: number;
}

export interface SimulatedJob extends JobSpec {
  by: Claimant;
  beganAt: number;
  /** When its first worker was ready. */
  readyAt: number | undefined;
  endedAt: number | undefined;
  left: number;
  inHand: number;
  workerSeconds: number;
  /** Times that one of its workers yielded. */
  yields: number;
}

interface Worker extends Holding {
  job: SimulatedJob;
  /** It starts, or has a batch in hand, until then. */
  busyUntil: number;
  isReady: boolean;
  yieldsFromMs: number;
  isYielding: boolean;
}

interface JobClaim extends Claim {
  job: SimulatedJob;
}

export class SimulatedMachine {
  readonly jobs: SimulatedJob[] = [];
  now = 0;
  /** The most worker-seconds that an API or a job which waited has had less than another. */
  largestDeficit = 0;
  private readonly cpus: number;
  private active: SimulatedJob[] = [];
  private claims: JobClaim[] = [];
  private workers: Worker[] = [];
  private deficits: Deficits = new Map();
  private roundAt = 0;

  constructor(cpus = 10) {
    this.cpus = cpus;
  }

  submit(spec: JobSpec): SimulatedJob {
    const state = { beganAt: this.now, readyAt: undefined, endedAt: undefined };
    const by = workersOf(`${spec.name}-${this.jobs.length}`, spec.api, 0);
    const job = { ...spec, ...state, by, left: spec.batches, inHand: 0, workerSeconds: 0, yields: 0 };
    this.jobs.push(job);
    this.active.push(job);
    return job;
  }

  /** Half a second passes. */
  step(): void {
    this.now += STEP;
    for (const worker of [...this.workers]) this.work(worker);
    this.active = this.active.filter((job) => job.endedAt === undefined);
    this.claims = this.claims.filter(({ job }) => this.wants(job) > 0 || job.left > 0);
    for (const job of this.active) this.claim(job);
    this.round();
  }

  private work(worker: Worker): void {
    const { job } = worker;
    job.workerSeconds += STEP * job.cpus;
    if (worker.busyUntil > this.now) return;
    if (worker.isReady) job.inHand--;
    else this.isReady(worker);
    if (job.left + job.inHand === 0) job.endedAt = this.now;
    if (worker.isYielding) job.yields++;
    if (job.left === 0 || worker.isYielding) return void this.workers.splice(this.workers.indexOf(worker), 1);
    job.left--;
    job.inHand++;
    worker.busyUntil = this.now + job.batchSeconds;
  }

  private isReady(worker: Worker): void {
    const { job } = worker;
    worker.isReady = true;
    worker.yieldsFromMs = 1000 * (this.now + Math.max(2, 10 * job.startSeconds));
    job.readyAt ??= this.now;
  }

  /** How many more workers it wants: none that would have no batch. */
  private wants(job: SimulatedJob): number {
    const has = this.workers.filter((worker) => worker.job === job).length;
    return Math.min(job.workers, has + job.left) - has;
  }

  private claim(job: SimulatedJob): void {
    const claimed = this.claims.filter((claim) => claim.job === job).length;
    const need = { cpuMillis: 1000 * job.cpus, memoryBytes: 0, gpus: 0 };
    for (let n = claimed; n < this.wants(job); n++)
      this.claims.push({ by: job.by, need, sinceMs: 1000 * this.now, job });
  }

  private round(): void {
    const used = this.workers.map(({ compute }) => compute);
    const all = { cpuMillis: 1000 * this.cpus, memoryBytes: 0, gpus: 0 };
    const { granted, yielding, deficits } = schedule({
      ...{ nowMs: 1000 * this.now, seconds: this.now - this.roundAt, deficits: this.deficits },
      ...{ free: used.reduce(minus, all), claims: this.claims, held: this.workers },
    });
    this.deficits = deficits;
    this.largestDeficit = Math.max(this.largestDeficit, ...deficits.values());
    this.roundAt = this.now;
    for (const worker of this.workers) worker.isYielding = yielding.has(worker);
    for (const { job, need: compute } of granted) {
      const times = { busyUntil: this.now + job.startSeconds, yieldsFromMs: Number.POSITIVE_INFINITY };
      this.workers.push({ ...times, job, by: job.by, compute, isReady: false, isYielding: false });
    }
    this.claims = this.claims.filter((claim) => !granted.includes(claim));
  }
}
