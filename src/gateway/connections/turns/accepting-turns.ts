/**
 * Gives accepting its share of the event loop. Node accepts one connection in a turn (libuv since 1.45). So while turns
 * were long, because many clients sent much, a connection that came behind 300 others waited for as many turns: 10 s.
 * Now turns that only accept take at most half of the time, for as long as connections come. One instance per process.
 */
import { ACCEPTING_MS, DEALT_PATIENCE_MS } from "../../../contracts/limits/requests.ts";

export class AcceptingTurns {
  private readonly nextTurn: (begin: () => void) => void;
  private readonly nowMs: () => number;
  private hasAccepted = false;
  /** How long these turns wait for the next connection. */
  private patienceMs = 0;
  private acceptedMs = 0;
  /** Connections came in more than one of these turns: more may be on their way. */
  private areMany = false;
  /** When these turns began; undefined while others work. */
  private sinceMs: number | undefined;
  private endedMs = Number.NEGATIVE_INFINITY;

  constructor(nextTurn: (begin: () => void) => void = setImmediate, nowMs = () => performance.now()) {
    this.nextTurn = nextTurn;
    this.nowMs = nowMs;
  }

  /** A connection came, of which nothing has been read. On the hot path. */
  accepted(): void {
    this.hasAccepted = true;
  }

  /** Connections come from the parent, which sends the next one when it hears that this process has the last one. */
  areDealt(): void {
    this.patienceMs = DEALT_PATIENCE_MS;
  }

  /** Whether the work that waits is to wait for the next turn. Call this only if some waits. */
  areDue(): boolean {
    if (this.sinceMs !== undefined) return true;
    const nowMs = this.nowMs();
    if (!this.hasAccepted || nowMs - this.endedMs < ACCEPTING_MS) return false;
    this.hasAccepted = false;
    this.sinceMs = nowMs;
    this.areMany = false;
    this.nextTurn(() => this.goOn());
    return true;
  }

  /** As long as each turn accepts one, or one comes soon after several. */
  private goOn(): void {
    const nowMs = this.nowMs();
    if (this.hasAccepted) [this.acceptedMs, this.areMany] = [nowMs, true];
    const mayCome = this.hasAccepted || (this.areMany && nowMs - this.acceptedMs < this.patienceMs);
    if (mayCome && nowMs - this.sinceMs! < ACCEPTING_MS) {
      this.hasAccepted = false;
      this.nextTurn(() => this.goOn());
      return;
    }
    this.sinceMs = undefined;
    this.endedMs = nowMs;
  }
}

export const acceptingTurns = new AcceptingTurns();
