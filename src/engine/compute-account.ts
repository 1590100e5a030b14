/**
 * What the machine has to give, and who waits for a part of it (decision 3.9). Whoever asks is served in the order of asking,
 * but one that does not fit does not hold up those behind it. It reckons; what is used is watched elsewhere
 * (memory-watch.ts).
 */
import { contain } from "../base/boundary.ts";

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
}

const UNNAMED = "others";
/** A sentence, no list: who has most is whom to look at. */
const HOLDERS_SHOWN = 5;

export class ComputeAccount {
  readonly total: Compute;
  private readonly free: { cpuMillis: number; memoryBytes: number; gpus: string[] };
  private readonly waiting = new Set<WaitingAsk>();
  /** What is given out, by whom it is held, for people. */
  private readonly held = new Map<Grant, string>();
  private isServing = false;

  constructor(total: Omit<Compute, "gpus"> & { gpus: readonly string[] }) {
    this.total = { ...total, gpus: total.gpus.length };
    this.free = { ...total, gpus: [...total.gpus] };
  }

  /** `onGranted` is called later, when `need` has been taken; whoever asked gives it back. `holder`: who that is, for others who wait. */
  ask(need: Compute, onGranted: (grant: Grant) => void, holder = UNNAMED): Ask {
    const ask = { need, onGranted, holder, sinceMs: performance.now() };
    this.waiting.add(ask);
    this.serveSoon();
    return ask;
  }

  /** False when it was granted already. */
  cancel(ask: Ask): boolean {
    return this.waiting.delete(ask as WaitingAsk);
  }

  /**
   * Takes without asking, CPUs and memory below nothing where it must: real-time replicas do not wait behind jobs.
   * Undefined, and nothing is taken, where GPUs are missing.
   */
  occupy(need: Compute, holder = UNNAMED): Grant | undefined {
    if (need.gpus > this.free.gpus.length) return undefined;
    return this.take(need, this.free.gpus.splice(0, need.gpus), holder);
  }

  /** Takes what somebody has already: a replica that outlived the controller before. */
  occupyAgain(need: Compute, gpus: readonly string[], holder = UNNAMED): Grant {
    this.free.gpus = this.free.gpus.filter((gpu) => !gpus.includes(gpu));
    return this.take(need, gpus, holder);
  }

  /** What was given back already is not there twice. */
  giveBack(grant: Grant): void {
    if (!this.held.delete(grant)) return;
    this.free.cpuMillis += grant.cpuMillis;
    this.free.memoryBytes += grant.memoryBytes;
    this.free.gpus = [...this.free.gpus, ...grant.gpus].sort();
    this.serveSoon();
  }

  /** For how many more of this need there is room, at most a thousand. */
  room(need: Compute): number {
    const { cpuMillis, memoryBytes, gpus } = this.free;
    return timesIn({ cpuMillis, memoryBytes, gpus: gpus.length }, need);
  }

  /** How many of this need the machine could hold were it empty, at most a thousand. */
  capacity(need: Compute): number {
    return timesIn(this.total, need);
  }

  /** For people: what one needs, what there is, and who has the rest. */
  describe(need: Compute): string {
    const { total, free } = this;
    const amounts = (cpuMillis: number, memoryBytes: number, gpus: number) =>
      amountsOf({ cpuMillis, memoryBytes, gpus }, need.gpus > 0);
    const one = amounts(need.cpuMillis, need.memoryBytes, need.gpus);
    const all = amounts(total.cpuMillis, total.memoryBytes, total.gpus);
    return `each takes ${one}; of ${all}, ${amounts(free.cpuMillis, Math.max(1, free.memoryBytes), free.gpus.length)} are free${this.describeHolders()}`;
  }

  /** Those that have most, with what they have together. */
  private describeHolders(): string {
    const sums = new Map<string, Compute>();
    for (const [{ cpuMillis, memoryBytes, gpus }, holder] of this.held) {
      const sum = sums.get(holder) ?? { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
      sum.cpuMillis += cpuMillis;
      sum.memoryBytes += memoryBytes;
      sum.gpus += gpus.length;
      sums.set(holder, sum);
    }
    const most = [...sums].sort(([, a], [, b]) => b.gpus - a.gpus || b.cpuMillis - a.cpuMillis);
    const shown = most
      .slice(0, HOLDERS_SHOWN)
      .map(([holder, sum]) => `${holder} (${amountsOf(sum, sum.gpus > 0)})`);
    const more = most.length > HOLDERS_SHOWN ? [`${most.length - HOLDERS_SHOWN} more`] : [];
    return shown.length === 0 ? "" : `; held by ${[...shown, ...more].join(", ")}`;
  }

  private take({ cpuMillis, memoryBytes }: Compute, gpus: readonly string[], holder: string): Grant {
    this.free.cpuMillis -= cpuMillis;
    this.free.memoryBytes -= memoryBytes;
    const grant = { cpuMillis, memoryBytes, gpus };
    this.held.set(grant, holder);
    return grant;
  }

  private serveSoon(): void {
    if (this.isServing) return;
    this.isServing = true;
    queueMicrotask(() => {
      this.isServing = false;
      for (const ask of this.waiting) {
        const grant = this.fits(ask.need) ? this.occupy(ask.need, ask.holder) : undefined;
        if (grant === undefined) continue;
        this.waiting.delete(ask);
        contain(`compute for ${ask.holder}`, () => ask.onGranted(grant));
      }
    });
  }

  private fits({ cpuMillis, memoryBytes }: Compute): boolean {
    const { free } = this;
    return cpuMillis <= free.cpuMillis && memoryBytes <= Math.max(0, free.memoryBytes);
  }
}

const TIMES_MAX = 1000;

function timesIn(has: Compute, { cpuMillis, memoryBytes, gpus }: Compute): number {
  const times = (all: number, one: number) => (one === 0 ? TIMES_MAX : Math.max(0, Math.floor(all / one)));
  return Math.min(
    TIMES_MAX,
    times(has.cpuMillis, cpuMillis),
    times(has.memoryBytes, memoryBytes),
    times(has.gpus, gpus),
  );
}

function amountsOf({ cpuMillis, memoryBytes, gpus }: Compute, withGpus: boolean): string {
  return [
    `${Math.max(0, cpuMillis) / 1000} CPU`,
    ...(memoryBytes > 0 ? [mib(memoryBytes)] : []),
    ...(withGpus ? [`${gpus} GPU`] : []),
  ].join(" and ");
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / (1024 * 1024))} MiB`;
}
