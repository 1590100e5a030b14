/**
 * Which APIs an explanation calls slow, for the overview of hundreds of them. Those whose durations in memory look
 * slower are explained, one after the other, and again while they are slow; all others in turn, seldom. So an overview
 * costs one question a second at most.
 */
import { inBackground } from "../../base/boundary.ts";
import { isSuspect } from "../../explain/past/suspect.ts";

/** An API that looks slow is asked about again after so long; later, if there are more of them than seconds. */
const AGAIN_MS = 15_000;
/** Others are asked about one by one. */
const TURN_MS = 10_000;
/** If nobody read for so long, earlier answers are not shown. */
const UNREAD_MS = 120_000;

type Durations = ReadonlyMap<string, readonly (readonly number[])[]>;

interface Known<Slow> {
  /** Undefined if nothing is slow, or if the explanation failed. */
  slow: Slow | undefined;
  atMs: number;
}

/** `Slow`: what an explanation finds. */
export class SlowApis<Slow> {
  private readonly explain: (name: string) => Promise<Slow | undefined>;
  private readonly known = new Map<string, Known<Slow>>();
  private suspects: ReadonlySet<string> = new Set();
  private suspectedMs = Number.NEGATIVE_INFINITY;
  private turnMs = Number.NEGATIVE_INFINITY;
  private isAsking = false;
  private readMs = Number.NEGATIVE_INFINITY;
  /** Older answers are not shown. */
  private sinceMs = Number.NEGATIVE_INFINITY;

  constructor(explain: (name: string) => Promise<Slow | undefined>) {
    this.explain = explain;
  }

  /** What is known now. `busy`: those with requests in the last minute; only they can be slow. */
  read(busy: readonly string[], durations: () => Durations, nowMs: number): ReadonlyMap<string, Slow> {
    if (nowMs - this.readMs > UNREAD_MS) this.sinceMs = nowMs;
    this.readMs = nowMs;
    const names = new Set(busy);
    for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
    if (nowMs - this.suspectedMs >= TURN_MS) {
      this.suspectedMs = nowMs;
      this.suspects = new Set([...durations()].filter(([, each]) => isSuspect(each)).map(([name]) => name));
    }
    const next = this.isAsking ? undefined : this.next(busy, nowMs);
    if (next !== undefined) inBackground(this.ask(next, nowMs));
    return new Map(
      [...this.known].flatMap(([name, { slow, atMs }]) =>
        slow === undefined || atMs < this.sinceMs ? [] : [[name, slow]],
      ),
    );
  }

  /** The one whose answer is the oldest. */
  private next(busy: readonly string[], nowMs: number): string | undefined {
    const atMs = (name: string) => this.known.get(name)?.atMs ?? Number.NEGATIVE_INFINITY;
    const oldest = (names: readonly string[]) =>
      names.reduce<string | undefined>(
        (first, name) => (first === undefined || atMs(name) < atMs(first) ? name : first),
        undefined,
      );
    const isUrgent = (name: string) => this.suspects.has(name) || this.known.get(name)?.slow !== undefined;
    const due = busy.filter((name) => nowMs - atMs(name) >= AGAIN_MS);
    const urgent = oldest(due.filter(isUrgent));
    if (urgent !== undefined || nowMs - this.turnMs < TURN_MS) return urgent;
    this.turnMs = nowMs;
    return oldest(due);
  }

  private async ask(name: string, nowMs: number): Promise<void> {
    this.isAsking = true;
    let slow: Slow | undefined;
    try {
      slow = await this.explain(name);
    } finally {
      // Also after an error: otherwise this one would be the oldest for ever.
      this.known.set(name, { slow, atMs: nowMs });
      this.isAsking = false;
    }
  }
}
