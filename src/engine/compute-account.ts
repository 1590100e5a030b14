/**
 * Tracks reservations of this machine's CPUs, memory and GPUs, and who waits for them. Replicas, workers of jobs and
 * stages of applications reserve by one rule. A request that fits is granted at once; all others wait. Waiting requests
 * are tried in order, but one that does not fit does not block later ones. The account does not measure what is used;
 * memory-watch.ts does.
 */
import { contain } from "../base/boundary.ts";
import { describeCompute, sumOf } from "./describe-compute.ts";

/** CPUs in thousandths, memory in bytes, and a number of GPUs. */
export interface Compute {
  cpuMillis: number;
  memoryBytes: number;
  gpus: number;
}

/** Granted compute. The same object must be given back. */
export interface Reservation {
  cpuMillis: number;
  memoryBytes: number;
  /** The names of the GPUs. */
  gpus: readonly string[];
}

export interface Ask {
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

interface WaitingAsk extends Ask {
  need: Compute;
  holder: string;
  onReserved: (reservation: Reservation) => void;
  /** Reserved for this request, until `onReserved` is called. */
  reservation: Reservation | undefined;
}

const UNNAMED = "others";
const PARTS = ["cpuMillis", "memoryBytes", "gpus"] as const;

export class ComputeAccount {
  readonly total: Compute;
  private readonly free: { cpuMillis: number; memoryBytes: number; gpus: string[] };
  /** Requests that do not fit the free compute. */
  private readonly waiting = new Set<WaitingAsk>();
  /** All granted reservations, with the holder's name for messages. */
  private readonly held = new Map<Reservation, string>();

  constructor(total: Omit<Compute, "gpus"> & { gpus: readonly string[] }) {
    const { cpuMillis, memoryBytes, gpus } = total;
    this.total = { cpuMillis, memoryBytes, gpus: gpus.length };
    this.free = { cpuMillis, memoryBytes, gpus: [...gpus] };
  }

  /**
   * Waits for `need`. `onReserved` is called later, with a reservation that the caller must give back. `holder` is the
   * caller's name for messages to others that wait.
   */
  ask(need: Compute, onReserved: (reservation: Reservation) => void, holder = UNNAMED): Ask {
    const ask: WaitingAsk = { need, onReserved, holder, sinceMs: performance.now(), reservation: undefined };
    this.waiting.add(ask);
    this.serveOne(ask);
    return ask;
  }

  /** How many requests wait. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  /** Since when the first of them waits (monotonic milliseconds). */
  get waitingSinceMs(): number | undefined {
    const [first] = this.waiting;
    return first?.sinceMs;
  }

  /** False if `onReserved` was called already. */
  cancel(ask: Ask): boolean {
    const { reservation } = ask as WaitingAsk;
    (ask as WaitingAsk).reservation = undefined;
    if (reservation !== undefined) this.giveBack(reservation);
    return this.waiting.delete(ask as WaitingAsk) || reservation !== undefined;
  }

  /**
   * Reserves without waiting, if it fits. It overtakes no waiting request, because none of them fits the free compute.
   */
  occupy(need: Compute, holder = UNNAMED): Reservation | undefined {
    return fits(need, this.available) ? this.take(need, holder) : undefined;
  }

  /**
   * As `occupy`, but may also use the CPUs of `others`, which will soon be given back. Memory and GPUs are not lent: if
   * two processes use the same memory, they are not slowed down, but one of them is killed.
   */
  borrow(need: Compute, others: readonly Reservation[], holder = UNNAMED): Reservation | undefined {
    return this.canBorrow(need, others) ? this.take(need, holder) : undefined;
  }

  canBorrow(need: Compute, others: readonly Reservation[]): boolean {
    const { cpuMillis } = this.freeWithout(need, others);
    return fits(need, { ...this.available, cpuMillis });
  }

  /**
   * Gives `reservations` back and reserves `need` in one step, so that no waiting request gets between. If it does not
   * fit, nothing changes and the result is undefined.
   */
  exchange(reservations: readonly Reservation[], need: Compute, holder = UNNAMED): Reservation | undefined {
    if (!this.canExchange(reservations, need)) return undefined;
    for (const reservation of reservations) this.release(reservation);
    const taken = this.take(need, holder);
    this.serve();
    return taken;
  }

  canExchange(reservations: readonly Reservation[], need: Compute): boolean {
    return fits(need, this.freeWithout(need, reservations));
  }

  /** Splits a reservation into `parts` equal ones. */
  split(reservation: Reservation, parts: number): Reservation[] {
    const holder = this.held.get(reservation);
    if (holder === undefined || !this.held.delete(reservation)) return [];
    const gpus = reservation.gpus.length / parts;
    return Array.from({ length: parts }, (_, i) => {
      const { cpuMillis, memoryBytes } = reservation;
      const part = {
        cpuMillis: cpuMillis / parts,
        memoryBytes: memoryBytes / parts,
        gpus: reservation.gpus.slice(i * gpus, (i + 1) * gpus),
      };
      this.held.set(part, holder);
      return part;
    });
  }

  /** Reserves what is in use already: by a replica that outlived the previous controller. */
  occupyAgain(need: Compute, gpus: readonly string[], holder = UNNAMED): Reservation {
    this.free.gpus = this.free.gpus.filter((gpu) => !gpus.includes(gpu));
    return this.hold({ ...need, gpus }, holder);
  }

  /** Giving the same reservation back twice has no effect. */
  giveBack(reservation: Reservation): void {
    this.release(reservation);
    this.serve();
  }

  /** How many more reservations of this size fit now; at most a thousand. */
  capacityLeft(need: Compute): number {
    return timesIn(this.available, need);
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

  /** The free compute. It is negative if more is reserved than the machine has. */
  get available(): Compute {
    return { ...this.free, gpus: this.free.gpus.length };
  }

  /**
   * What `need` could use if `reservations` were given back. It is never less than these, even if more is reserved than
   * the machine has.
   */
  private freeWithout(need: Compute, reservations: readonly Reservation[]): Compute {
    const free = this.available;
    const theirs = sumOf(reservations);
    for (const part of PARTS)
      free[part] = need[part] <= theirs[part] ? theirs[part] : free[part] + theirs[part];
    return free;
  }

  private take(need: Compute, holder: string): Reservation {
    return this.hold({ ...need, gpus: this.free.gpus.splice(0, need.gpus) }, holder);
  }

  private hold({ cpuMillis, memoryBytes, gpus }: Reservation, holder: string): Reservation {
    this.free.cpuMillis -= cpuMillis;
    this.free.memoryBytes -= memoryBytes;
    const reservation = { cpuMillis, memoryBytes, gpus };
    this.held.set(reservation, holder);
    return reservation;
  }

  private release(reservation: Reservation): void {
    if (!this.held.delete(reservation)) return;
    this.free.cpuMillis += reservation.cpuMillis;
    this.free.memoryBytes += reservation.memoryBytes;
    this.free.gpus = [...this.free.gpus, ...reservation.gpus].sort();
  }

  private serve(): void {
    for (const ask of this.waiting) this.serveOne(ask);
  }

  /**
   * Reserves at once, so that no waiting request fits afterwards. It calls `onReserved` later, after the caller has
   * finished.
   */
  private serveOne(ask: WaitingAsk): void {
    const taken = this.occupy(ask.need, ask.holder);
    if (taken === undefined) return;
    this.waiting.delete(ask);
    ask.reservation = taken;
    queueMicrotask(() => {
      const { reservation } = ask;
      ask.reservation = undefined;
      if (reservation !== undefined) contain(`compute for ${ask.holder}`, () => ask.onReserved(reservation));
    });
  }
}

/** A resource that is not requested does not have to be available. */
function fits(need: Compute, free: Compute): boolean {
  return PARTS.every((part) => need[part] <= Math.max(0, free[part]));
}

const TIMES_MAX = 1000;

function timesIn(has: Compute, need: Compute): number {
  const times = PARTS.map((part) => (need[part] === 0 ? TIMES_MAX : Math.floor(has[part] / need[part])));
  return Math.max(0, Math.min(TIMES_MAX, ...times));
}
