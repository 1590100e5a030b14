/**
 * Waits until this server may take its database, while another one has it. Changes nothing meanwhile
 * (docs/decisions/0037-standby.md).
 */
import { setTimeout as pause } from "node:timers/promises";
import { DATABASE_STANDBY_POLL_MS } from "../../contracts/limits/database.ts";
import { judgeLease, type Lease, type LeaseOwner } from "./lease.ts";
import { endLocked, findLease } from "./lease-rows.ts";
import type { Session } from "./session.ts";

/** Who has the database. Undefined: one that says nothing about itself, such as an older release. */
export type OnStandby = (lease: Lease | undefined) => void;

export interface StandbyOptions {
  own: LeaseOwner;
  /** Called when the waiting begins, and when another one has the database. */
  onStandby: OnStandby;
  /** The waiting is over: why this server takes the database. */
  onTakeover: (lease: Lease | undefined, why: "free" | "silent") => void;
}

export class Standby {
  private readonly options: StandbyOptions;
  /** The renewal that was seen last, and since when. */
  private seen: { renewal: string; sinceMs: number } | undefined;
  /** Whom it was told to wait for. */
  private told: string | undefined;

  constructor(options: StandbyOptions) {
    this.options = options;
  }

  /** Resolves when the session may take the database; another one that waits may be faster. */
  async wait(session: Session): Promise<void> {
    // Nobody could renew a lease while there was no connection.
    if (this.seen !== undefined) this.seen.sinceMs = performance.now();
    for (;;) {
      const found = await findLease(session);
      const { lease } = found;
      const verdict = judgeLease(found, {
        directory: this.options.own.directory,
        sameForMs: this.look(lease),
      });
      if (verdict !== "wait") {
        if (this.told !== undefined) this.options.onTakeover(lease, verdict === "end" ? "silent" : "free");
        this.told = undefined;
        if (verdict === "end") await endLocked(session);
        return;
      }
      this.tell(lease);
      await pause(DATABASE_STANDBY_POLL_MS);
    }
  }

  /** For how long the renewal has been the same; undefined at the first look. */
  private look(lease: Lease | undefined): number | undefined {
    const nowMs = performance.now();
    const renewal = `${lease?.writer} ${lease?.renewed}`;
    const before = this.seen;
    if (before?.renewal !== renewal) this.seen = { renewal, sinceMs: nowMs };
    return before === undefined ? undefined : nowMs - this.seen!.sinceMs;
  }

  private tell(lease: Lease | undefined): void {
    const writer = lease?.writer ?? "";
    if (this.told === writer) return;
    this.told = writer;
    this.options.onStandby(lease);
  }
}
