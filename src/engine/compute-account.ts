/**
 * The CPUs, memory and GPUs of this machine: who has reserved what, and who waits. Replicas, workers of jobs and stages of
 * applications get their part by one rule: what fits is given at once, everything else waits. Those that wait are served in the
 * order of asking, but one that does not fit does not hold up those after it. The account only tracks reservations; what is
 * used is watched elsewhere (memory-watch.ts).
 */
import { contain } from "../base/boundary.ts";
import { describeCompute, sumOf } from "./describe-compute.ts";

/** Thousandths of a CPU, bytes of memory, GPUs. */
export interface Compute {
  cpuMillis: number;
  memoryBytes: number;
  gpus: number;
}

/** What was given: to be given back as it is. */
export interface Grant {
  cpuMillis: number;
  memoryBytes: number;
  /** The GPUs themselves. */
  gpus: readonly string[];
}

export interface Ask {
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

interface WaitingAsk extends Ask {
  need: Compute;
  holder: string;
  onGranted: (grant: Grant) => void;
  /** Taken for it, until it is told. */
  grant: Grant | undefined;
}

const UNNAMED = "others";
const PARTS = ["cpuMillis", "memoryBytes", "gpus"] as const;

export class ComputeAccount {
  readonly total: Compute;
  private readonly free: { cpuMillis: number; memoryBytes: number; gpus: string[] };
  /** None of them fits what is free. */
  private readonly waiting = new Set<WaitingAsk>();
  /** What is given out, by whom it is held, for people. */
  private readonly held = new Map<Grant, string>();

  constructor(total: Omit<Compute, "gpus"> & { gpus: readonly string[] }) {
    const { cpuMillis, memoryBytes, gpus } = total;
    this.total = { cpuMillis, memoryBytes, gpus: gpus.length };
    this.free = { cpuMillis, memoryBytes, gpus: [...gpus] };
  }

  /** `onGranted` is called later, when `need` has been taken; whoever asked gives it back. `holder`: who that is, for others who wait. */
  ask(need: Compute, onGranted: (grant: Grant) => void, holder = UNNAMED): Ask {
    const ask: WaitingAsk = { need, onGranted, holder, sinceMs: performance.now(), grant: undefined };
    this.waiting.add(ask);
    this.serveOne(ask);
    return ask;
  }

  /** False when `onGranted` was called already. */
  cancel(ask: Ask): boolean {
    const { grant } = ask as WaitingAsk;
    (ask as WaitingAsk).grant = undefined;
    if (grant !== undefined) this.giveBack(grant);
    return this.waiting.delete(ask as WaitingAsk) || grant !== undefined;
  }

  /** Takes without waiting, if it fits. Nobody who waits is passed over: what is free fits none of them. */
  occupy(need: Compute, holder = UNNAMED): Grant | undefined {
    return fits(need, this.available) ? this.take(need, holder) : undefined;
  }

  /**
   * As `occupy`, but also with CPUs that are not free yet: those of `others`, which are about to be given back. Memory and GPUs
   * are not lent: two that use the same memory do not become slower, one of them is killed.
   */
  borrow(need: Compute, others: readonly Grant[], holder = UNNAMED): Grant | undefined {
    return this.canBorrow(need, others) ? this.take(need, holder) : undefined;
  }

  canBorrow(need: Compute, others: readonly Grant[]): boolean {
    const { cpuMillis } = this.freeWithout(need, others);
    return fits(need, { ...this.available, cpuMillis });
  }

  /** Gives `grants` back and takes `need` in one step: nobody comes between. Undefined, and nothing changes, if it does not fit. */
  exchange(grants: readonly Grant[], need: Compute, holder = UNNAMED): Grant | undefined {
    if (!this.canExchange(grants, need)) return undefined;
    for (const grant of grants) this.release(grant);
    const taken = this.take(need, holder);
    this.serve();
    return taken;
  }

  canExchange(grants: readonly Grant[], need: Compute): boolean {
    return fits(need, this.freeWithout(need, grants));
  }

  /** Cuts a grant into `parts` equal ones. */
  split(grant: Grant, parts: number): Grant[] {
    const holder = this.held.get(grant);
    if (holder === undefined || !this.held.delete(grant)) return [];
    const gpus = grant.gpus.length / parts;
    return Array.from({ length: parts }, (_, i) => {
      const { cpuMillis, memoryBytes } = grant;
      const part = {
        cpuMillis: cpuMillis / parts,
        memoryBytes: memoryBytes / parts,
        gpus: grant.gpus.slice(i * gpus, (i + 1) * gpus),
      };
      this.held.set(part, holder);
      return part;
    });
  }

  /** Takes what somebody has already: a replica that outlived the controller before. */
  occupyAgain(need: Compute, gpus: readonly string[], holder = UNNAMED): Grant {
    this.free.gpus = this.free.gpus.filter((gpu) => !gpus.includes(gpu));
    return this.hold({ ...need, gpus }, holder);
  }

  /** What was given back already is not there twice. */
  giveBack(grant: Grant): void {
    this.release(grant);
    this.serve();
  }

  /** For how many more of this need there is room, at most a thousand. */
  room(need: Compute): number {
    return timesIn(this.available, need);
  }

  /** How many of this need the machine could hold were it empty, at most a thousand. */
  capacity(need: Compute): number {
    return timesIn(this.total, need);
  }

  /** For people: what one needs, how much there is, who has the rest, and what to do. */
  describe(need: Compute): string {
    return describeCompute(need, { total: this.total, free: this.available, held: this.held });
  }

  /** What nobody has; below nothing where more is reserved than there is. */
  get available(): Compute {
    return { ...this.free, gpus: this.free.gpus.length };
  }

  /** What `need` could take if `grants` were given back: never less than they are, though more is reserved than there is. */
  private freeWithout(need: Compute, grants: readonly Grant[]): Compute {
    const free = this.available;
    const theirs = sumOf(grants);
    for (const part of PARTS)
      free[part] = need[part] <= theirs[part] ? theirs[part] : free[part] + theirs[part];
    return free;
  }

  private take(need: Compute, holder: string): Grant {
    return this.hold({ ...need, gpus: this.free.gpus.splice(0, need.gpus) }, holder);
  }

  private hold({ cpuMillis, memoryBytes, gpus }: Grant, holder: string): Grant {
    this.free.cpuMillis -= cpuMillis;
    this.free.memoryBytes -= memoryBytes;
    const grant = { cpuMillis, memoryBytes, gpus };
    this.held.set(grant, holder);
    return grant;
  }

  private release(grant: Grant): void {
    if (!this.held.delete(grant)) return;
    this.free.cpuMillis += grant.cpuMillis;
    this.free.memoryBytes += grant.memoryBytes;
    this.free.gpus = [...this.free.gpus, ...grant.gpus].sort();
  }

  private serve(): void {
    for (const ask of this.waiting) this.serveOne(ask);
  }

  /** Takes at once, so that what is free afterwards fits nobody who waits; tells later, when the caller has finished. */
  private serveOne(ask: WaitingAsk): void {
    const taken = this.occupy(ask.need, ask.holder);
    if (taken === undefined) return;
    this.waiting.delete(ask);
    ask.grant = taken;
    queueMicrotask(() => {
      const { grant } = ask;
      ask.grant = undefined;
      if (grant !== undefined) contain(`compute for ${ask.holder}`, () => ask.onGranted(grant));
    });
  }
}

/** What is not asked for may be missing. */
function fits(need: Compute, free: Compute): boolean {
  return PARTS.every((part) => need[part] <= Math.max(0, free[part]));
}

const TIMES_MAX = 1000;

function timesIn(has: Compute, need: Compute): number {
  const times = PARTS.map((part) => (need[part] === 0 ? TIMES_MAX : Math.floor(has[part] / need[part])));
  return Math.max(0, Math.min(TIMES_MAX, ...times));
}
