/**
 * Regular work, such as polls and heartbeats. Whoever does some every second or two does it at the same instants of the
 * machine's monotonic clock, in all processes. So an idle server wakes up once for all of it: a wake-up costs an idle
 * machine about a millisecond of a core, whatever is done in it.
 */
import { contain } from "../boundary.ts";

interface Repeated {
  everyMs: number;
  unit: string;
  work: () => unknown;
  dueMs: number;
}

/** The event loop counts whole milliseconds: a timer may fire this much before its time. */
const EARLY_MS = 1;

/** When work of this period is due next: at a multiple of it, and not sooner than after half of it. */
export function nextDueMs(everyMs: number, nowMs: number): number {
  return Math.ceil((nowMs + everyMs / 2) / everyMs) * everyMs;
}

class Pulse {
  private readonly all = new Set<Repeated>();
  private timer: NodeJS.Timeout | undefined;

  add(everyMs: number, unit: string, work: () => unknown): () => void {
    const repeated = { everyMs, unit, work, dueMs: nextDueMs(everyMs, monotonicMs()) };
    this.all.add(repeated);
    this.arm();
    return () => {
      this.all.delete(repeated);
      if (this.all.size === 0) clearTimeout(this.timer);
    };
  }

  private arm(): void {
    clearTimeout(this.timer);
    if (this.all.size === 0) return;
    const leftMs = Math.min(...[...this.all].map(({ dueMs }) => dueMs)) - monotonicMs();
    // In the past after slow work, or if the process was stopped.
    this.timer = setTimeout(() => this.beat(), Math.max(0, Math.ceil(leftMs))).unref();
  }

  private beat(): void {
    const nowMs = monotonicMs();
    for (const repeated of this.all) {
      if (repeated.dueMs > nowMs + EARLY_MS) continue;
      repeated.dueMs = nextDueMs(repeated.everyMs, nowMs);
      contain(repeated.unit, repeated.work);
    }
    this.arm();
  }
}

const pulse = new Pulse();

/**
 * Does `work` every `everyMs` milliseconds until the returned function is called. An exception is reported, and the
 * work is done again. `unit` names it in that report. The timer does not keep the process alive.
 */
export function every(everyMs: number, unit: string, work: () => unknown): () => void {
  return pulse.add(everyMs, unit, work);
}

/** The same in all processes, unlike `performance.now()`. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
