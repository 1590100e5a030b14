/** Kills the server of the bucket, cuts its connections off, and lets it hang, at random moments. */
import { setTimeout as pause } from "node:timers/promises";
import type { TestS3 } from "../harness/stores.ts";

const PAUSE_MS = [1_000, 6_000] as const;
const AWAY_MS = [100, 4_000] as const;
/** A part has up to 64 MiB, sent in pieces of 8 MiB. */
const CUT_BYTES_MAX = 9 * 1024 * 1024;

type How = "kill" | "silent" | "cut-request" | "cut";
const WAYS: readonly How[] = ["kill", "silent", "cut-request", "cut"];

export class StoreAttacker {
  private readonly bucket: TestS3;
  private readonly random: () => number;
  private readonly counts = new Map<How, number>();
  private isOver = false;
  private running: Promise<void> = Promise.resolve();

  constructor(bucket: TestS3, random: () => number) {
    this.bucket = bucket;
    this.random = random;
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.running;
  }

  summary(): string {
    return WAYS.map((how) => `${how} ${this.counts.get(how) ?? 0}`).join(", ");
  }

  private between([from, to]: readonly [number, number]): number {
    return from + this.random() * (to - from);
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      await pause(this.between(PAUSE_MS));
      const how = WAYS[Math.floor(this.random() * WAYS.length)]!;
      if (this.isOver) return;
      this.counts.set(how, (this.counts.get(how) ?? 0) + 1);
      await this.attack(how);
    }
  }

  private async attack(how: How): Promise<void> {
    const { bucket } = this;
    if (how === "kill") bucket.kill();
    else if (how === "silent") bucket.proxy!.set({ kind: how });
    else bucket.proxy!.set({ kind: how, afterBytes: Math.floor(this.random() * CUT_BYTES_MAX), times: 3 });
    await pause(this.between(AWAY_MS));
    if (how === "kill") await bucket.restart();
    else bucket.proxy!.set({ kind: "none" });
  }
}
