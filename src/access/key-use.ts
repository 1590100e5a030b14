/**
 * When keys were last used, exact to a minute. Gateways tell it, and it is saved once a minute, so that a request costs
 * the database nothing. A controller that is killed loses the last minute.
 */
import { contain } from "../base/boundary.ts";
import { timestamp } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";

const SAVE_EVERY_MS = 60_000;
/** Keys in one statement. SQLite allows 32,766 parameters, PostgreSQL 65,535. */
const SAVED_AT_ONCE = 500;

export interface KeyUseDeps {
  /** Saves that these keys were last used at this time. */
  save: (ids: readonly string[], time: string) => Promise<void>;
  log: Log;
}

export class KeyUse implements Service {
  private readonly deps: KeyUseDeps;
  /** Of each key; undefined if it was never used. */
  private readonly times = new Map<string, string | undefined>();
  private unsaved = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(deps: KeyUseDeps) {
    this.deps = deps;
  }

  async start(): Promise<void> {
    this.timer = setInterval(() => contain("saving the use of keys", () => this.save()), SAVE_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.save();
  }

  /** Begins to keep the time of a key. */
  know(id: string, time: string | null): void {
    this.times.set(id, time ?? undefined);
  }

  /** Keys that were used, each with the minute in milliseconds. The admin token is not a key. */
  note(used: readonly (readonly [id: string, minuteMs: number])[]): void {
    for (const [id, minuteMs] of used) {
      const time = timestamp(BigInt(minuteMs) * 1_000_000n);
      if (!this.times.has(id) || (this.times.get(id) ?? "") >= time) continue;
      this.times.set(id, time);
      this.unsaved.add(id);
    }
  }

  /** Null if it was never used. */
  lastOf(id: string): string | null {
    return this.times.get(id) ?? null;
  }

  /** What cannot be saved is saved the next time. The first failure ends it: a database that is down takes a while to say. */
  private async save(): Promise<void> {
    const parts = this.unsavedParts();
    while (parts.length > 0 && (await this.isSaved(...parts[0]!))) parts.shift();
    for (const [ids] of parts) for (const id of ids) this.unsaved.add(id);
  }

  /** What is to be saved: some keys, and their time. */
  private unsavedParts(): [ids: string[], time: string][] {
    const byTime = new Map<string, string[]>();
    for (const id of this.unsaved) {
      const time = this.times.get(id)!;
      const ids = byTime.get(time) ?? [];
      ids.push(id);
      byTime.set(time, ids);
    }
    this.unsaved = new Set();
    const parts: [string[], string][] = [];
    for (const [time, ids] of byTime)
      for (let first = 0; first < ids.length; first += SAVED_AT_ONCE)
        parts.push([ids.slice(first, first + SAVED_AT_ONCE), time]);
    return parts;
  }

  private async isSaved(ids: readonly string[], time: string): Promise<boolean> {
    try {
      await this.deps.save(ids, time);
      return true;
    } catch (error) {
      this.deps.log.warn(
        { event: "key_use_not_saved", err: error as Error },
        "the last use of keys could not be saved yet",
      );
      return false;
    }
  }
}
