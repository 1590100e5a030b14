/**
 * Objects of the state that no row names: of submissions that were cut off, and of jobs whose retention is over. Their
 * prefix is recorded before the first object is written, or in the commit that makes them useless. So nothing is ever
 * searched for.
 */
import { inBackground } from "../base/boundary.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { PRUNE_EVERY_MS } from "../contracts/limits/jobs.ts";
import type { Database, Statements } from "../database/database.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { removeBelow } from "./state-store.ts";

/** No controller has it: objects below a prefix of this epoch are removed at any time. */
const NOBODY = 0;

/** Before objects are written below `prefix`. The commit that names them calls `nameObjects`. */
export async function expectObjects(tx: Statements, prefix: string, epoch: number): Promise<void> {
  await tx.run(
    "INSERT INTO state_garbage (prefix, epoch) VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET epoch = excluded.epoch",
    [prefix, epoch],
  );
}

export async function nameObjects(tx: Statements, prefix: string): Promise<void> {
  await tx.run("DELETE FROM state_garbage WHERE prefix = ?", [prefix]);
}

/** In the commit after which nothing names them. */
export function giveUpObjects(tx: Statements, prefix: string): Promise<void> {
  return expectObjects(tx, prefix, NOBODY);
}

export interface GarbageOptions {
  db: Database;
  log: Log;
  store: ObjectStore;
  /** Of this controller: what it has in hand is no garbage. */
  epoch: number;
}

export class Garbage implements Service {
  private readonly options: GarbageOptions;
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<unknown> = Promise.resolve();
  private isStopped = false;

  constructor(options: GarbageOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.soon();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** After something became useless. */
  soon(): void {
    clearTimeout(this.timer);
    if (this.isStopped) return;
    this.timer = setTimeout(() => {
      this.running = this.running.then(() => this.sweep());
      inBackground(this.running.then(() => this.again()));
    }, 0).unref();
  }

  /** Resolves to how many objects were removed. */
  async runOnce(): Promise<number> {
    const { db, store, epoch } = this.options;
    let removed = 0;
    const due = await db.all<{ prefix: string }>("SELECT prefix FROM state_garbage WHERE epoch < ?", [epoch]);
    for (const { prefix } of due) {
      if (this.isStopped) break;
      removed += await removeBelow(store, prefix);
      await nameObjects(db, prefix);
    }
    return removed;
  }

  private async sweep(): Promise<void> {
    await this.runOnce().catch((error: Error) =>
      this.options.log.warn(
        { event: "state_not_removed", err: error },
        "objects of the state that nothing needs could not be removed",
      ),
    );
  }

  private again(): void {
    clearTimeout(this.timer);
    if (!this.isStopped) this.timer = setTimeout(() => this.soon(), PRUNE_EVERY_MS).unref();
  }
}
