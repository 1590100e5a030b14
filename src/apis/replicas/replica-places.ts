/**
 * The compute reservations of one API's replicas: those of its workers, those kept for their successors, and those it
 * waits for. If a replica dies or makes space for its successor, its reservation stays with the API. No other waiting
 * API or job gets it first.
 */
import type { ComputeAccount } from "../../engine/compute-account.ts";
import { sumOf } from "../../engine/describe-compute.ts";
import type { Ask, Reservation } from "../../engine/reservations.ts";
import type { Claimant } from "../../engine/scheduler/claims.ts";
import { type Compute, combine, isEqual } from "../../engine/scheduler/compute.ts";

/** A worker and its reservation; undefined once another worker has taken it over. */
export interface ReservedWorker {
  reservation: Reservation | undefined;
}

export interface PlacesOptions {
  account: ComputeAccount;
  by: Claimant;
  /** Called when a reservation that was waited for is granted. */
  onReserved: () => void;
}

export class ReplicaPlaces {
  private readonly options: PlacesOptions;
  /** The compute of one worker of the newest version. */
  private need: Compute = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
  private perReplica = 1;
  private kept: Reservation[] = [];
  /** Each ask is for a whole replica. Otherwise two APIs with half a replica each would wait for each other. */
  private asks: Ask[] = [];

  constructor(options: PlacesOptions) {
    this.options = options;
  }

  /** Adapts to a new version: reservations that were kept or requested for the former one are released. */
  fit(need: Compute, perReplica: number): void {
    const isSame = perReplica === this.perReplica && isEqual(need, this.need);
    this.need = need;
    this.perReplica = perReplica;
    if (!isSame) this.release();
  }

  /** Reservations that no worker uses yet. */
  get spare(): number {
    return this.kept.length;
  }

  /** How many more workers the machine has capacity for now. */
  get capacityLeft(): number {
    return this.options.account.capacityLeft(this.need);
  }

  /** Takes a reservation for a worker; undefined if there is none. */
  take(): Reservation | undefined {
    const { account, by } = this.options;
    return this.kept.pop() ?? account.occupy(this.need, by);
  }

  /** Reserves again for a worker that a former controller started. */
  takeAgain(gpus: readonly string[]): Reservation {
    const { account, by } = this.options;
    return account.occupyAgain(this.need, gpus, by);
  }

  /** Keeps the reservation of a worker that is gone, for its successor. */
  keep(reservation: Reservation): void {
    const { account, by } = this.options;
    const isSame = isEqual(this.need, sumOf([reservation]));
    const fitting = isSame ? reservation : account.exchange([reservation], this.need, by);
    if (fitting === undefined) account.giveBack(reservation);
    else this.kept.push(fitting);
  }

  /** Gives back the kept reservations beyond `count`. */
  keepOnly(count: number): void {
    for (const reservation of this.kept.splice(count)) this.options.account.giveBack(reservation);
  }

  /** Waits for the compute of this many more workers, in whole replicas, and cancels other requests. */
  waitFor(workers: number): void {
    const { account, by } = this.options;
    const whole = this.ofReplica;
    const count = Math.min(Math.ceil(workers / this.perReplica), Math.max(1, account.capacity(whole)));
    for (const ask of this.asks.splice(workers > 0 ? count : 0)) account.cancel(ask);
    while (workers > 0 && this.asks.length < count) {
      const ask: Ask = account.ask(whole, (reservation) => this.granted(ask, reservation), by);
      this.asks.push(ask);
    }
  }

  /** Whether a new replica could run on the CPUs of `old` until those workers leave. */
  canBorrow(old: readonly ReservedWorker[]): boolean {
    return this.options.account.canBorrow(this.ofReplica, reservationsOf(old));
  }

  borrow(old: readonly ReservedWorker[]): void {
    const { account, by } = this.options;
    const reservation = account.borrow(this.ofReplica, reservationsOf(old), by);
    if (reservation !== undefined) this.kept.push(...account.split(reservation, this.perReplica));
  }

  /**
   * How many of `old`, at least a replica's worth, must leave before one new replica fits. 0 if it would not fit even
   * without all of them.
   */
  leavingForOne(old: readonly ReservedWorker[]): number {
    const { account } = this.options;
    for (let count = Math.min(this.perReplica, old.length); count > 0 && count <= old.length; count++)
      if (account.canExchange(reservationsOf(old.slice(0, count)), this.ofReplica)) return count;
    return 0;
  }

  /** Enlarges the reservations of the leaving workers `old` to fit the replica that follows them. */
  handOver(old: readonly ReservedWorker[]): void {
    const { account, by } = this.options;
    const reservations = reservationsOf(old);
    // They do not shrink yet: until the old workers are gone, these use what they have.
    const most = combine(sumOf(reservations), this.ofReplica, (a, b) => Math.max(a, b));
    const reservation = account.exchange(reservations, most, by);
    if (reservation === undefined) return;
    const parts = account.split(reservation, this.perReplica);
    for (const [i, worker] of old.entries()) worker.reservation = parts[i];
    this.kept.push(...parts.slice(old.length));
  }

  /** Describes what one replica needs, and who holds that compute. */
  describe(): string {
    return this.options.account.describe(this.ofReplica, true);
  }

  /** Releases all kept reservations, and cancels all requests. */
  release(): void {
    this.keepOnly(0);
    this.waitFor(0);
  }

  private get ofReplica(): Compute {
    const { cpuMillis, memoryBytes, gpus } = this.need;
    const times = this.perReplica;
    return { cpuMillis: cpuMillis * times, memoryBytes: memoryBytes * times, gpus: gpus * times };
  }

  private granted(ask: Ask, reservation: Reservation): void {
    this.asks = this.asks.filter((other) => other !== ask);
    this.kept.push(...this.options.account.split(reservation, this.perReplica));
    this.options.onReserved();
  }
}

function reservationsOf(workers: readonly ReservedWorker[]): Reservation[] {
  return workers.flatMap(({ reservation }) => (reservation === undefined ? [] : [reservation]));
}
