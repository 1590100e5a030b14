/**
 * Runs the comparison of the wanted state with the actual one: one run at a time, and one more if something asked for
 * it meanwhile.
 */
import { setTimeout as schedule } from "node:timers";
import { inBackground } from "../../base/boundary.ts";
import type { Log } from "../../base/log.ts";

/** How often free capacity is checked again. Also, an old replica may have become enough for a new one. */
const CAPACITY_POLL_MS = 1_000;

export class ReconcileLoop {
  private readonly log: Log;
  private readonly reconcile: () => Promise<void>;
  private running: Promise<void> | undefined;
  private capacityTimer: NodeJS.Timeout | undefined;
  private isAgain = false;
  private hasEnded = false;

  constructor(log: Log, reconcile: () => Promise<void>) {
    this.log = log;
    this.reconcile = reconcile;
  }

  /** Resolves after a run that began after this call. */
  async run(): Promise<void> {
    if (this.hasEnded) return;
    this.isAgain = true;
    this.running ??= this.repeat().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  soon(): void {
    inBackground(this.run());
  }

  after(waitMs: number): void {
    schedule(() => this.soon(), waitMs).unref();
  }

  /** There is only one timer. Otherwise each run would add another one. */
  pollCapacity(): void {
    this.capacityTimer ??= schedule(() => {
      this.capacityTimer = undefined;
      this.soon();
    }, CAPACITY_POLL_MS).unref();
  }

  get isStopped(): boolean {
    return this.hasEnded;
  }

  /** No run begins from now on. Resolves when the run in progress is over. */
  async stop(): Promise<void> {
    this.hasEnded = true;
    await this.running;
  }

  private async repeat(): Promise<void> {
    while (this.isAgain && !this.hasEnded) {
      this.isAgain = false;
      await this.reconcile().catch((error: Error) =>
        this.log.error({ event: "reconcile_failed", err: error }, "replicas could not be reconciled"),
      );
    }
  }
}
