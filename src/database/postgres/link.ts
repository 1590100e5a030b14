/**
 * Keeps a session of PostgreSQL: connects again after it was lost, with growing pauses, and finds out then whether the
 * commit that was under way has happened. Knows no statement of Quern's.
 */
import { inBackground } from "../../base/boundary.ts";
import { CannotStart } from "../../contracts/cannot-start.ts";
import { DATABASE_HANGS_MS, POSTGRES_RECONNECT } from "../../contracts/limits/database.ts";
import { type ConnectionLost, inWords, pauseMs } from "./faults.ts";
import { Later } from "./later.ts";
import type { Tenure } from "./ownership.ts";
import type { Session } from "./session.ts";

/** Reports that the database cannot be reached, and that it can be again. */
export type OnReach = (state: { isReached: boolean; why: string; forMs: number }) => void;

export interface LinkOptions {
  open: () => Promise<Session>;
  /** Makes the session the only one that may write. */
  take: (session: Session) => Promise<Tenure>;
  /** Whether the very first connection gives up because of this error, which is then thrown. */
  isFinal: (error: unknown) => boolean;
  onReach: OnReach;
  /** Somebody else has taken the database, or it is another one now. No connection is made any more. */
  onTaken: (error: Error) => void;
}

export interface Connected {
  session: Session;
  tenure: Tenure;
}

interface Outage {
  why: string;
  sinceMs: number;
  isTold: boolean;
}

export class Link {
  /** The connection in use; undefined while there is none. */
  current: Connected | undefined;
  private readonly options: LinkOptions;
  private waiting = new Later<Connected>();
  private outage: Outage | undefined;
  /** A commit whose outcome the next session tells. */
  private unknown: { mark: string; tell: (hasHappened: boolean) => void } | undefined;
  private wasReached = false;
  private isClosed = false;
  private retry: NodeJS.Timeout | undefined;

  constructor(options: LinkOptions) {
    this.options = options;
  }

  /** Connects for the first time. Rejects only if `isFinal` says so; otherwise it waits for as long as it takes. */
  start(): Promise<Connected> {
    inBackground(this.connect(0));
    return this.whenUp();
  }

  whenUp(): Promise<Connected> {
    return this.current === undefined ? this.waiting.promise : Promise.resolve(this.current);
  }

  /** Why the database cannot be used now; undefined if it can. */
  get fault(): string | undefined {
    if (this.outage !== undefined) return this.outage.why;
    const since = this.current?.session.waitingSinceMs;
    const hangsMs = since === undefined ? 0 : performance.now() - since;
    return hangsMs < DATABASE_HANGS_MS
      ? undefined
      : `a statement has had no answer for ${Math.round(hangsMs / 1000)} s`;
  }

  /** Resolves once it is known whether the commit with this mark has happened. Call it before the session is lost. */
  outcomeOf(mark: string): Promise<boolean> {
    return new Promise((tell) => {
      this.unknown = { mark, tell };
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.retry);
    const session = this.current?.session;
    this.end(new Error("the database was closed"));
    await session?.leave();
  }

  /** Uses no connection again. */
  private end(error: Error): void {
    this.isClosed = true;
    this.current = undefined;
    this.waiting.reject(error);
    this.outage ??= { why: error.message, sinceMs: performance.now(), isTold: true };
  }

  /**
   * Somebody else has taken the database. What waits goes on waiting, as in every outage: a job must not end because of
   * it.
   */
  giveUp(error: CannotStart): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.retry);
    const { current } = this;
    if (current !== undefined) this.waiting = new Later();
    this.current = undefined;
    current?.session.close();
    this.outage = { why: error.message, sinceMs: performance.now(), isTold: true };
    this.options.onTaken(error);
  }

  private lost(connected: Connected, error: ConnectionLost): void {
    if (this.current !== connected || this.isClosed) return;
    this.current = undefined;
    this.waiting = new Later();
    this.note(error);
    inBackground(this.connect(0));
  }

  private async connect(tries: number): Promise<void> {
    let session: Session | undefined;
    try {
      session = await this.options.open();
      const tenure = await this.options.take(session);
      if (this.isClosed) session.close();
      else this.use({ session, tenure });
    } catch (error) {
      session?.close();
      if (this.isClosed) return;
      if (!this.wasReached && (error instanceof CannotStart || this.options.isFinal(error)))
        return this.end(error as Error);
      if (error instanceof CannotStart) return this.giveUp(error);
      this.note(error);
      const waitMs = pauseMs(tries, POSTGRES_RECONNECT, Math.random());
      this.retry = setTimeout(() => inBackground(this.connect(tries + 1)), waitMs);
    }
  }

  private use(connected: Connected): void {
    const { session, tenure } = connected;
    // It may have been lost since its last answer.
    if (session.isLost) throw new Error("the connection broke at once");
    this.current = connected;
    this.wasReached = true;
    session.onLost = (error) => this.lost(connected, error);
    const { unknown, outage } = this;
    this.unknown = undefined;
    this.outage = undefined;
    unknown?.tell(unknown.mark === tenure.mark);
    this.waiting.resolve(connected);
    if (outage?.isTold)
      this.options.onReach({ isReached: true, why: outage.why, forMs: performance.now() - outage.sinceMs });
  }

  /** A connection that comes back at the first attempt is not worth a line. */
  private note(error: unknown): void {
    const why = inWords(error);
    if (this.outage === undefined) {
      this.outage = { why, sinceMs: performance.now(), isTold: false };
      return;
    }
    this.outage.why = why;
    if (this.outage.isTold) return;
    this.outage.isTold = true;
    this.options.onReach({ isReached: false, why, forMs: performance.now() - this.outage.sinceMs });
  }
}
