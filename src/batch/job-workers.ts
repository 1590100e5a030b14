/** The workers of one job: as many as are wanted and the machine has room for, replaced when they die, all gone at the end. */
import { contain } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import { type RoomWait, whenThereIsRoom } from "../base/disk-full.ts";
import type { WorkerCounts } from "../contracts/jobs.ts";
import { STALLED_AFTER_MS } from "../contracts/limits.ts";
import type { Ask, Compute, ComputeAccount, Grant } from "../engine/compute-account.ts";
import type { RunningWorker } from "../engine/engine.ts";
import type { Init } from "../protocol/messages.ts";
import { BatchWorker, type BatchWorkerEvents } from "./batch-worker.ts";

const START_AGAIN_MS = 1_000;
const NO_ROOM_FOR_SOCKET = { code: "ENOSPC" };

export interface JobWorkersOptions {
  epoch: number;
  account: ComputeAccount;
  /** Where the disk has no room for its log. */
  room: RoomWait;
  /** Who has what the workers take of the account, for others who wait. */
  holder: string;
  /** What one worker takes of the account. */
  need: () => Compute;
  start: (gpus: readonly string[]) => Promise<RunningWorker>;
  forget: (workerId: string) => Promise<void>;
  init: () => Promise<Init>;
  events: BatchWorkerEvents;
  /** A worker process could not be started, or what it requires could not be installed. */
  onStartFailed: (error: Error) => void;
}

export class JobWorkers {
  private readonly options: JobWorkersOptions;
  /** Each with what it has of the account. */
  private readonly workers = new Map<BatchWorker, Grant>();
  private readonly asks = new Set<Ask>();
  /** Of workers that are gone: those that take their place do not wait again. */
  private kept: Grant[] = [];
  private wanted = 0;
  /** Since when more workers are wanted than the machine could hold: those ask for nothing yet. */
  private unaskedSinceMs = Number.POSITIVE_INFINITY;
  private starting = 0;
  private failed = 0;
  private isStopped = false;
  /** The job is about to end: what failed is not tried again meanwhile. */
  private isFaulty = false;
  private hasToldOfNoRoom = false;

  constructor(options: JobWorkersOptions) {
    this.options = options;
  }

  /**
   * Asks for what is missing to `count` workers, and asks no longer for what is too much. Returns at once. `count` may be any
   * number that a submission has: asks that the machine could not grant were it empty are not made before others are granted.
   */
  keepAt(count: number): void {
    if (this.isStopped) return;
    this.wanted = count;
    const surplus = this.workers.size + this.starting + this.asks.size - count;
    for (const ask of surplus > 0 ? [...this.asks].slice(-surplus) : []) this.cancel(ask);
    while (!this.isFaulty && this.unasked > 0 && this.kept.length > 0) this.startWith(this.kept.pop()!);
    this.giveKeptBack();
    this.askForMissing();
  }

  private askForMissing(): void {
    const { account, need } = this.options;
    if (this.isStopped || this.isFaulty) return;
    const most = Math.max(1, account.capacity(need()));
    while (this.unasked > 0 && this.asks.size < most) this.askForOne();
    this.unaskedSinceMs =
      this.unasked === 0 ? Number.POSITIVE_INFINITY : Math.min(this.unaskedSinceMs, performance.now());
  }

  /** Wanted, and not even asked for. */
  private get unasked(): number {
    return Math.max(0, this.wanted - this.workers.size - this.starting - this.asks.size);
  }

  ready(): BatchWorker[] {
    return [...this.workers.keys()].filter((worker) => worker.state === "ready");
  }

  /** The counts of the contract. Whoever has waited for compute for long is stalled, not pending. */
  counts(nowMs: number): WorkerCounts {
    const running = this.ready().length;
    const stalled = this.waiting(nowMs - STALLED_AFTER_MS);
    return {
      pending: this.asks.size + this.unasked - stalled,
      initializing: this.workers.size - running + this.starting,
      running,
      succeeded: 0,
      failed: this.failed,
      stalled,
    };
  }

  /** What workers wait for that have no compute, in a sentence; undefined where none does. */
  describeWaiting(): string | undefined {
    const { account, need } = this.options;
    const size = this.asks.size + this.unasked;
    if (size === 0) return undefined;
    return `${size} worker${size === 1 ? " waits" : "s wait"} for compute: ${account.describe(need())}`;
  }

  /** How many have asked for compute since before `sinceMs`, and have none. */
  waiting(sinceMs: number): number {
    const asking = [...this.asks].filter((ask) => ask.sinceMs < sinceMs).length;
    return asking + (this.unaskedSinceMs < sinceMs ? this.unasked : 0);
  }

  /** SIGTERM to all, SIGKILL after `graceMs`; resolves when they are gone. */
  async stopAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    this.wanted = 0;
    for (const ask of this.asks) this.cancel(ask);
    this.giveKeptBack();
    await Promise.all([...this.workers.keys()].map((worker) => this.stopOne(worker, graceMs)));
  }

  /** One that cannot be stopped, or forgotten, keeps no other from it. */
  private async stopOne(worker: BatchWorker, graceMs: number): Promise<void> {
    try {
      await worker.stop(graceMs);
      await this.drop(worker);
    } catch (error) {
      this.options.events.onFault(error as Error);
    }
  }

  private askForOne(): void {
    const { account, need, holder } = this.options;
    const onGranted = (grant: Grant) => {
      this.asks.delete(ask);
      this.startWith(grant);
      this.inside(() => this.askForMissing());
    };
    const ask = account.ask(need(), onGranted, holder);
    this.asks.add(ask);
  }

  private startWith(grant: Grant): void {
    contain(
      "a worker of a job",
      () => this.startOne(grant),
      (error) => this.notStarted(grant, error),
    );
  }

  private giveKeptBack(): void {
    for (const grant of this.kept.splice(0)) this.options.account.giveBack(grant);
  }

  private cancel(ask: Ask): void {
    if (this.options.account.cancel(ask)) this.asks.delete(ask);
  }

  private async startOne(grant: Grant): Promise<void> {
    const { start, events, init, epoch, onStartFailed, account, room } = this.options;
    this.starting++;
    const running = await whenThereIsRoom(() => start(grant.gpus), room)
      .catch((error: Error) => onStartFailed(error))
      .finally(() => this.starting--);
    if (running === undefined) return account.giveBack(grant);
    const worker = new BatchWorker(running, {
      ...events,
      onSetUpFailed: (failed, fault) => {
        this.failed++;
        this.inside(() => this.drop(failed));
        events.onSetUpFailed(failed, fault);
      },
      onNoRoom: (failed) => {
        if (!this.hasToldOfNoRoom) room.onWait(NO_ROOM_FOR_SOCKET);
        this.hasToldOfNoRoom = true;
        this.inside(async () => {
          await delay(START_AGAIN_MS);
          await this.drop(failed);
          events.onNoRoom(failed);
        });
      },
      onDeath: (dead, death) => {
        this.inside(() => this.drop(dead));
        events.onDeath(dead, death);
      },
    });
    this.workers.set(worker, grant);
    // The job may have ended while the process was starting.
    if (!this.isStopped) return worker.setUp(await init(), epoch);
    await worker.stop(0);
    await this.drop(worker);
  }

  private inside(work: () => unknown): void {
    contain("the workers of a job", work, (error) => this.fault(error));
  }

  private fault(error: Error): void {
    this.isFaulty = true;
    this.options.events.onFault(error);
  }

  /** What it had of the machine is others' again, unless there is a worker that has it. */
  private notStarted(grant: Grant, error: Error): void {
    this.fault(error);
    if (![...this.workers.values()].includes(grant)) this.options.account.giveBack(grant);
  }

  private async drop(worker: BatchWorker): Promise<void> {
    const { account, forget } = this.options;
    const grant = this.workers.get(worker);
    if (grant === undefined) return;
    this.workers.delete(worker);
    if (this.isStopped) account.giveBack(grant);
    else this.kept.push(grant);
    await forget(worker.identity.worker_id);
  }
}
