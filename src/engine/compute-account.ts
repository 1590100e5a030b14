/**
 * Tracks reservations of this machine's CPUs, memory and GPUs, and who waits for them: replicas, workers of jobs and
 * stages of applications. The scheduler decides whose turn it is, and which workers of jobs yield
 * (docs/decisions/0030-scheduler.md). The account does not measure what is used; memory-watch.ts does.
 */
import { contain } from "../base/boundary.ts";
import { ComputeQueue } from "./compute-queue.ts";
import { describeCompute, sumOf } from "./describe-compute.ts";
import {
  type Ask,
  type Held,
  newlyHeld,
  OTHERS,
  type Reservation,
  type WaitingAsk,
  type Yielding,
} from "./reservations.ts";
import type { Claimant, Holding } from "./scheduler/claims.ts";
import { type Compute, combine, fits, minus, timesIn } from "./scheduler/compute.ts";
import type { JobsAbove } from "./scheduler/jobs-above.ts";
import type { Delay } from "./scheduler/schedule.ts";

export class ComputeAccount {
  readonly total: Compute;
  private readonly free: { cpuMillis: number; memoryBytes: number; gpus: string[] };
  /** All granted reservations. */
  private readonly held = new Map<Reservation, Held>();
  private readonly queue: ComputeQueue;
  private tellTaken: () => void = () => {};

  constructor(total: Omit<Compute, "gpus"> & { gpus: readonly string[] }) {
    const { cpuMillis, memoryBytes, gpus } = total;
    this.total = { cpuMillis, memoryBytes, gpus: gpus.length };
    this.free = { cpuMillis, memoryBytes, gpus: [...gpus] };
    const { held } = this;
    this.queue = new ComputeQueue({ held, free: () => this.available, grant: (ask) => this.grant(ask) });
  }

  /** Waits for `need`. `onReserved` is called later, with a reservation that the caller must give back. */
  ask(need: Compute, onReserved: (reservation: Reservation) => void, by = OTHERS): Ask {
    const ask: WaitingAsk = { need, onReserved, by, sinceMs: performance.now(), reservation: undefined };
    this.queue.add(ask);
    return ask;
  }

  /** `listener` is called when something has been reserved. */
  onTaken(listener: () => void): void {
    this.tellTaken = listener;
  }

  /** How many requests wait. */
  get waitingCount(): number {
    return this.queue.size;
  }

  /** Since when the first of them waits (monotonic milliseconds). */
  get waitingSinceMs(): number | undefined {
    return this.queue.sinceMs;
  }

  /** The worker of a reservation may be asked to yield from now on; undefined: it may not. */
  mayYield(reservation: Reservation, yielding: Yielding | undefined): void {
    const held = this.held.get(reservation);
    if (held === undefined) return;
    held.yieldsFromMs = yielding?.fromMs ?? Number.POSITIVE_INFINITY;
    held.asked = yielding?.asked;
  }

  /** Whether a successor of a reservation's worker may use it without a new request. */
  mayKeep(_: Reservation): boolean {
    return this.waitingCount === 0;
  }

  /** Why a request waits; undefined if it does not, or is not the oldest of its job or API. */
  delayOf(ask: Ask): Delay | undefined {
    return this.queue.delayOf(ask);
  }

  /** The jobs that come before all of this priority. */
  jobsAbove(priority: number): JobsAbove {
    return this.queue.jobsAbove(priority);
  }

  /** False if `onReserved` was called already. */
  cancel(ask: Ask): boolean {
    const { reservation } = ask as WaitingAsk;
    (ask as WaitingAsk).reservation = undefined;
    if (reservation !== undefined) this.giveBack(reservation);
    return this.queue.remove(ask as WaitingAsk) || reservation !== undefined;
  }

  /** Reserves without waiting, for a replica: if it fits beside what is set aside for replicas that wait. */
  occupy(need: Compute, by = OTHERS): Reservation | undefined {
    return fits(need, this.freeForLive) ? this.take(need, by) : undefined;
  }

  /**
   * As `occupy`, but may also use the CPUs of `others`, which will soon be given back. Memory and GPUs are not lent: if
   * two processes use the same memory, they are not slowed down, but one of them is killed.
   */
  borrow(need: Compute, others: readonly Reservation[], by = OTHERS): Reservation | undefined {
    return this.canBorrow(need, others) ? this.take(need, by) : undefined;
  }

  canBorrow(need: Compute, others: readonly Reservation[]): boolean {
    const { cpuMillis } = this.freeWithout(need, others);
    return fits(need, { ...this.freeForLive, cpuMillis });
  }

  /**
   * Gives `reservations` back and reserves `need` in one step, so that no waiting request gets between. If it does not
   * fit, nothing changes and the result is undefined.
   */
  exchange(reservations: readonly Reservation[], need: Compute, by = OTHERS): Reservation | undefined {
    if (!this.canExchange(reservations, need)) return undefined;
    for (const reservation of reservations) this.release(reservation);
    const taken = this.take(need, by);
    this.queue.hasChanged();
    return taken;
  }

  canExchange(reservations: readonly Reservation[], need: Compute): boolean {
    return fits(need, this.freeWithout(need, reservations));
  }

  /** Splits a reservation into `parts` equal ones. */
  split(reservation: Reservation, parts: number): Reservation[] {
    const held = this.held.get(reservation);
    if (held === undefined || !this.held.delete(reservation)) return [];
    const gpus = reservation.gpus.length / parts;
    return Array.from({ length: parts }, (_, i) => {
      const { cpuMillis, memoryBytes } = reservation;
      const part = {
        cpuMillis: cpuMillis / parts,
        memoryBytes: memoryBytes / parts,
        gpus: reservation.gpus.slice(i * gpus, (i + 1) * gpus),
      };
      this.held.set(part, newlyHeld(part, held.by));
      return part;
    });
  }

  /** Reserves what is in use already: by a replica that outlived the previous controller. */
  occupyAgain(need: Compute, gpus: readonly string[], by = OTHERS): Reservation {
    this.free.gpus = this.free.gpus.filter((gpu) => !gpus.includes(gpu));
    return this.hold({ ...need, gpus }, by);
  }

  /** Giving the same reservation back twice has no effect. */
  giveBack(reservation: Reservation): void {
    this.release(reservation);
    this.queue.hasChanged();
  }

  /** How many more replicas of this size fit now; at most a thousand. */
  capacityLeft(need: Compute): number {
    return timesIn(this.freeForLive, need);
  }

  /** How many reservations of this size would fit on the empty machine; at most a thousand. */
  capacity(need: Compute): number {
    return timesIn(this.total, need);
  }

  /** For people: what is needed, how much exists, who holds it (for administrators), and what to do. */
  describe(need: Compute, withNames: boolean): string {
    const { total, available: free, held } = this;
    return describeCompute(need, { total, free, held }, withNames);
  }

  /** Who holds what, a reservation each. */
  get holdings(): Iterable<Holding> {
    return this.held.values();
  }

  /** The free compute. It is negative if more is reserved than the machine has. */
  get available(): Compute {
    return { ...this.free, gpus: this.free.gpus.length };
  }

  /**
   * What `need` could use if `reservations` were given back. It is never less than these, even if more is reserved than
   * the machine has.
   */
  private freeWithout(need: Compute, reservations: readonly Reservation[]): Compute {
    const theirs = sumOf(reservations);
    return combine(this.freeForLive, theirs, (free, given, part) =>
      need[part] <= given ? given : free + given,
    );
  }

  private get freeForLive(): Compute {
    return minus(this.available, this.queue.asideForReplicas);
  }

  private take(need: Compute, by: Claimant): Reservation {
    return this.hold({ ...need, gpus: this.free.gpus.splice(0, need.gpus) }, by);
  }

  private hold({ cpuMillis, memoryBytes, gpus }: Reservation, by: Claimant): Reservation {
    this.free.cpuMillis -= cpuMillis;
    this.free.memoryBytes -= memoryBytes;
    const reservation = { cpuMillis, memoryBytes, gpus };
    this.held.set(reservation, newlyHeld(reservation, by));
    this.tellTaken();
    return reservation;
  }

  private release(reservation: Reservation): void {
    if (!this.held.delete(reservation)) return;
    this.free.cpuMillis += reservation.cpuMillis;
    this.free.memoryBytes += reservation.memoryBytes;
    this.free.gpus = [...this.free.gpus, ...reservation.gpus].sort();
  }

  /** Reserves at once. It calls `onReserved` later, after the caller has finished. */
  private grant(ask: WaitingAsk): void {
    ask.reservation = this.take(ask.need, ask.by);
    queueMicrotask(() => {
      const { reservation } = ask;
      ask.reservation = undefined;
      if (reservation !== undefined)
        contain(`compute for ${ask.by.holder}`, () => ask.onReserved(reservation));
    });
  }
}
