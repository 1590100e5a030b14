/**
 * Renews the lease of the server that has a PostgreSQL database, on a connection of its own, so that a long statement
 * delays no renewal. Notices if another server has taken the database (docs/decisions/0037-standby.md).
 */
import { setTimeout as pause } from "node:timers/promises";
import { contain } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";
import { every } from "../../base/loop/pulse.ts";
import {
  DATABASE_LEASE_MS,
  DATABASE_RENEW_MS,
  POSTGRES_RENEWAL_MS,
} from "../../contracts/limits/database.ts";
import { DatabaseUnavailable } from "../database.ts";
import { Later } from "./later.ts";
import { giveUpLease, renewLease } from "./lease-rows.ts";
import { Session } from "./session.ts";

const LEAVE_MS = 1_000;
const LIMITS = { serverMs: POSTGRES_RENEWAL_MS, clientMs: POSTGRES_RENEWAL_MS };

export interface LeaseKeeperOptions {
  url: string;
  writer: string;
  /** Another server has the database. Called once. */
  onTaken: () => void;
}

export class LeaseKeeper {
  private readonly options: LeaseKeeperOptions;
  private session: Session | undefined;
  /** When the last renewal that succeeded was sent. */
  private renewed = bothClocks();
  private renewing: Promise<void> | undefined;
  private next = new Later<void>();
  private isOver = false;
  private endTimer = () => {};

  constructor(options: LeaseKeeperOptions) {
    this.options = options;
  }

  start(): void {
    this.endTimer = every(DATABASE_RENEW_MS, "the lease of the database", () => this.renewSoon());
    this.renewSoon();
  }

  /**
   * Resolves once this server has the database for certain: at once, if the lease was renewed lately. So a process that
   * was stopped does not go on with what another one has in hand. Rejects if another server has it, or if `signal` is
   * aborted while the database cannot be reached.
   */
  async confirm(signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.isOver) throw new DatabaseUnavailable("another server has taken it", false);
      if (longerSince(this.renewed) < DATABASE_LEASE_MS) return;
      if (signal.aborted) throw new DatabaseUnavailable("the lease was not renewed", false);
      await this.next.promise;
    }
  }

  /** Gives the lease up: a server that waits takes the database at once. */
  async close(): Promise<void> {
    const { isOver } = this;
    this.end();
    await Promise.race([this.renewing, pause(LEAVE_MS)]);
    const { session } = this;
    if (session === undefined || session.isLost) return;
    // A database that does not respond tells nobody.
    if (session.waitingSinceMs !== undefined) return session.close();
    if (!isOver) await giveUpLease(session, this.options.writer).catch(() => {});
    await session.leave();
  }

  private renewSoon(): void {
    if (this.renewing !== undefined || this.isOver) return;
    contain("the lease of the database", async () => {
      this.renewing = this.renew();
      await this.renewing;
      this.renewing = undefined;
    });
  }

  private async renew(): Promise<void> {
    const sent = bothClocks();
    try {
      if (this.session === undefined || this.session.isLost) this.session = await this.open();
      const isOurs = await renewLease(this.session, this.options.writer);
      if (this.isOver) return;
      if (isOurs) this.renewed = sent;
      else this.taken();
    } catch {
      // The link says that the database cannot be reached (link.ts). The next renewal is due soon.
      this.session?.close();
      this.session = undefined;
    } finally {
      const { next } = this;
      this.next = new Later();
      next.resolve();
    }
  }

  private async open(): Promise<Session> {
    const session = await Session.open(this.options.url, LIMITS);
    // What a crash of the server loses of it would be too old anyway.
    await session.exec("SET synchronous_commit = off");
    return session;
  }

  private taken(): void {
    this.end();
    this.options.onTaken();
  }

  /** It is given up, or another server has it: nothing is confirmed any more. */
  end(): void {
    this.isOver = true;
    this.endTimer();
    this.next.resolve();
  }
}

/**
 * The monotonic clock stands still while the machine is suspended, and the server that waits does not. The wall clock
 * may be set: forward, this waits for one more renewal.
 */
function bothClocks() {
  return { monotonicMs: performance.now(), wallMs: wallMs() };
}

function longerSince(before: ReturnType<typeof bothClocks>): number {
  const now = bothClocks();
  return Math.max(now.monotonicMs - before.monotonicMs, now.wallMs - before.wallMs);
}
