/**
 * The compute of one job's workers: asks the machine's account for what is missing, keeps the reservations of workers
 * that are gone for their replacements, and counts who waits. It starts no worker.
 */
import { contain } from "../../base/boundary.ts";
import type { WorkerCounts } from "../../contracts/jobs.ts";
import {
  COMPUTE_ASKS_MANY,
  STALLED_AFTER_MS,
  WORKS_AT_LEAST_MS,
  WORKS_PER_START,
} from "../../contracts/limits/jobs.ts";
import type { OpenFiles, WorkerFiles } from "../../engine/open-files.ts";
import type { Ask, Reservation, Yielding } from "../../engine/reservations.ts";
import type { Claimant } from "../../engine/scheduler/claims.ts";
import type { Compute } from "../../engine/scheduler/compute.ts";
import { describeDelay } from "./describe-delay.ts";
import type { JobCompute } from "./job-compute.ts";

export interface ReservationOptions {
  account: JobCompute;
  /** The descriptors of this process. */
  openFiles: OpenFiles;
  /** The compute that one worker reserves. */
  compute: Compute;
  /** The job. */
  by: Claimant;
}

export interface ReservationEvents {
  /** There is compute for one more worker. It is given back by `giveBack` or `keep`. */
  reserved(reservation: Reservation): void;
  /** Receives internal errors that no caller gets. */
  fault(error: Error): void;
}

export class WorkerReservations {
  /** How many workers there should be. */
  wanted = 0;
  /** Reservations of workers that are running or being started. */
  held = 0;
  private readonly options: ReservationOptions;
  private readonly events: ReservationEvents;
  private readonly asks = new Set<Ask>();
  /** Reservations of workers that are gone, so that their replacements do not wait again. */
  private kept: Reservation[] = [];
  /**
   * Since when some wanted workers have not asked for compute, because the machine could not hold them; else infinity.
   */
  private unaskedSinceMs = Number.POSITIVE_INFINITY;
  private mayAsk = true;
  /** The descriptors of each worker that has compute. */
  private readonly files = new Map<Reservation, WorkerFiles>();
  private isShortOfFiles = false;

  constructor(options: ReservationOptions, events: ReservationEvents) {
    this.options = options;
    this.events = events;
  }

  /** Workers that are wanted and have no compute yet. */
  get missing(): number {
    return this.asks.size + this.unasked;
  }

  /** Workers that are wanted but have not asked for compute yet. */
  private get unasked(): number {
    return Math.max(0, this.wanted - this.held - this.asks.size);
  }

  /**
   * Reserves or asks for compute for up to `count` workers, and cancels asks above it. No more asks wait at once than
   * the empty machine could grant; only one does while very many asks wait.
   */
  keepAt(count: number): void {
    this.wanted = count;
    const surplus = this.held + this.asks.size - count;
    for (const ask of surplus > 0 ? [...this.asks].slice(-surplus) : []) this.cancel(ask);
    while (this.mayAsk && this.unasked > 0) {
      const reservation = this.kept.pop();
      if (reservation === undefined) break;
      this.hand(reservation);
    }
    this.giveKeptBack();
    this.askForMissing();
  }

  /**
   * The reservation's worker is gone. The next one uses it, or the next `keepAt` gives it back. If anybody waits, it is
   * given back at once, and the next worker asks as the others do: otherwise workers that die again and again would
   * hold it for ever, because none of them works long enough to be asked to yield.
   */
  keep(reservation: Reservation): void {
    const { account } = this.options;
    if (!account.mayKeep(reservation)) return this.giveBack(reservation);
    this.held--;
    this.endFiles(reservation);
    account.mayYield(reservation, undefined);
    this.kept.push(reservation);
  }

  /** A worker works. It may be asked to yield once it has worked long enough for what its start took. */
  works(reservation: Reservation, startMs: number, asked: Yielding["asked"]): void {
    this.files.get(reservation)?.isSetUp();
    const fromMs = performance.now() + Math.max(WORKS_AT_LEAST_MS, WORKS_PER_START * startMs);
    this.options.account.mayYield(reservation, { fromMs, asked });
  }

  giveBack(reservation: Reservation): void {
    this.held--;
    this.endFiles(reservation);
    this.options.account.giveBack(reservation);
  }

  /** The job is about to end because of an internal error: asks for no further worker. */
  stopAsking(): void {
    this.mayAsk = false;
  }

  /** Cancels all asks. Nothing is reserved any more, except for workers that are there. */
  stop(): void {
    this.mayAsk = false;
    this.wanted = 0;
    for (const ask of this.asks) this.cancel(ask);
    this.giveKeptBack();
  }

  /** Counts the workers that have waited for compute since before `sinceMs`. */
  waiting(sinceMs: number): number {
    const asking = [...this.asks].filter((ask) => ask.sinceMs < sinceMs).length;
    return asking + (this.unaskedSinceMs < sinceMs ? this.unasked : 0);
  }

  /**
   * Of the workers that are not ready. One that has waited long for compute is stalled, not pending. One whose
   * environment is being made is initializing, as on this machine.
   */
  counts(ready: number, nowMs: number): Pick<WorkerCounts, "pending" | "initializing" | "stalled"> {
    const preparing = Math.min(this.missing, this.options.account.preparingCount ?? 0);
    const waiting = this.missing - preparing;
    const stalled = Math.min(waiting, this.waiting(nowMs - STALLED_AFTER_MS));
    return { pending: waiting - stalled, initializing: this.held - ready + preparing, stalled };
  }

  /** Describes in a sentence what the workers without compute wait for; undefined if there are none. */
  describeWaiting(withNames: boolean): string | undefined {
    const { missing } = this;
    if (missing === 0) return undefined;
    const delay = this.isShortOfFiles ? "" : this.describeDelay(withNames);
    return `${missing} worker${missing === 1 ? " waits" : "s wait"} ${this.describeNeed(withNames)}${delay}`;
  }

  /** What workers wait for, after "wait". Names the APIs and jobs that hold compute if `withNames`. */
  describeNeed(withNames: boolean): string {
    const { account, compute, openFiles } = this.options;
    if (this.isShortOfFiles) return openFiles.describe();
    return `for compute: ${account.describe(compute, withNames)}`;
  }

  /** Asks again if descriptors were short. Nobody tells when one is closed, so the caller asks now and then. */
  askAgain(): void {
    if (this.isShortOfFiles) this.keepAt(this.wanted);
  }

  private describeDelay(withNames: boolean): string {
    const { account, by } = this.options;
    const delays = [...this.asks].map((ask) => account.delayOf(ask));
    const delay = delays.find((known) => known !== undefined);
    return describeDelay(delay, account.jobsAbove(by.priority), withNames);
  }

  private askForMissing(): void {
    const { account, compute } = this.options;
    if (!this.mayAsk) return;
    this.isShortOfFiles = this.unasked > 0 && !this.hasFilesFor(this.asks.size + 1);
    const most = account.waitingCount > COMPUTE_ASKS_MANY ? 1 : Math.max(1, account.capacity(compute));
    while (this.unasked > 0 && this.asks.size < most && !this.isShortOfFiles) {
      this.askForOne();
      this.isShortOfFiles = this.unasked > 0 && !this.hasFilesFor(this.asks.size + 1);
    }
    this.unaskedSinceMs =
      this.unasked === 0 ? Number.POSITIVE_INFINITY : Math.min(this.unaskedSinceMs, performance.now());
  }

  private askForOne(): void {
    const { account, compute, by } = this.options;
    const onReserved = (reservation: Reservation) => {
      this.asks.delete(ask);
      this.hand(reservation);
      contain(
        "the workers of a job",
        () => this.askForMissing(),
        (error) => this.events.fault(error),
      );
    };
    const ask = account.ask(compute, onReserved, by);
    this.asks.add(ask);
  }

  private hand(reservation: Reservation): void {
    const files = this.options.openFiles.take(this.held === 0);
    this.held++;
    if (files === undefined) return this.giveBack(reservation);
    this.files.set(reservation, files);
    this.events.reserved(reservation);
  }

  private hasFilesFor(workers: number): boolean {
    return this.options.openFiles.hasSpaceFor(workers, this.held + workers === 1);
  }

  private endFiles(reservation: Reservation): void {
    this.files.get(reservation)?.end();
    this.files.delete(reservation);
  }

  private cancel(ask: Ask): void {
    if (this.options.account.cancel(ask)) this.asks.delete(ask);
  }

  private giveKeptBack(): void {
    for (const reservation of this.kept.splice(0)) this.options.account.giveBack(reservation);
  }
}
