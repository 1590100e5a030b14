/**
 * What the machine has to give, and who waits for a part of it (decision 3.9). Whoever asks is served in the order of asking,
 * but one that does not fit does not hold up those behind it. It reckons; nothing here limits a process.
 */

/** Thousandths of a CPU, and bytes of memory. */
export interface Compute {
  cpuMillis: number;
  memoryBytes: number;
}

export interface Ask {
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

interface WaitingAsk extends Ask {
  need: Compute;
  onGranted: () => void;
}

export class ComputeAccount {
  readonly total: Compute;
  private readonly free: Compute;
  private readonly waiting = new Set<WaitingAsk>();
  private isServing = false;

  constructor(total: Compute) {
    this.total = total;
    this.free = { ...total };
  }

  /** `onGranted` is called later, when `need` has been taken; whoever asked gives it back. */
  ask(need: Compute, onGranted: () => void): Ask {
    const ask = { need, onGranted, sinceMs: performance.now() };
    this.waiting.add(ask);
    this.serveSoon();
    return ask;
  }

  /** False when it was granted already. */
  cancel(ask: Ask): boolean {
    return this.waiting.delete(ask as WaitingAsk);
  }

  /** Takes without asking, below nothing where it must: real-time replicas do not wait behind jobs. */
  occupy(need: Compute): void {
    this.free.cpuMillis -= need.cpuMillis;
    this.free.memoryBytes -= need.memoryBytes;
  }

  giveBack(need: Compute): void {
    this.free.cpuMillis += need.cpuMillis;
    this.free.memoryBytes += need.memoryBytes;
    this.serveSoon();
  }

  /** For people: what one needs, and what there is. */
  describe(need: Compute): string {
    const one = `${need.cpuMillis / 1000} CPU${need.memoryBytes > 0 ? ` and ${mib(need.memoryBytes)}` : ""}`;
    const free = `${Math.max(0, this.free.cpuMillis) / 1000} CPU and ${mib(Math.max(0, this.free.memoryBytes))}`;
    return `each takes ${one}; of ${this.total.cpuMillis / 1000} CPU and ${mib(this.total.memoryBytes)}, ${free} are free`;
  }

  private serveSoon(): void {
    if (this.isServing) return;
    this.isServing = true;
    queueMicrotask(() => {
      this.isServing = false;
      for (const ask of this.waiting) {
        if (!this.fits(ask.need)) continue;
        this.waiting.delete(ask);
        this.occupy(ask.need);
        ask.onGranted();
      }
    });
  }

  private fits({ cpuMillis, memoryBytes }: Compute): boolean {
    const { free } = this;
    return cpuMillis <= free.cpuMillis && memoryBytes <= Math.max(0, free.memoryBytes);
  }
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / (1024 * 1024))} MiB`;
}
