/**
 * The overview for all who follow it: computed once a second for all together, and soon after a change that somebody
 * asked for, but only while somebody follows. Each gets the whole first, and then what has changed; one who does not
 * read gets the whole again.
 */
import { contain } from "../../base/boundary.ts";
import { every } from "../../base/loop/pulse.ts";
import type { OverviewShown } from "../../contracts/http/overview-operations.ts";
import {
  OVERVIEW_BEHIND_MAX,
  OVERVIEW_EVERY_MS,
  OVERVIEW_SOON_MS,
  STREAM_HEARTBEAT_MS,
} from "../../contracts/limits/responses.ts";
import { databaseError } from "../answers/shortages.ts";
import { changesBetween } from "./overview-changes.ts";

export interface Listener {
  /** Events that wait for it. */
  readonly waiting: string[];
  /** Called when there is another one. */
  wake: () => void;
}

export class LiveOverview {
  private readonly compute: () => Promise<OverviewShown>;
  private readonly listeners = new Set<Listener>();
  private stopTicks: (() => void) | undefined;
  /** What all listeners have got, with the changes that wait for them. */
  private told: OverviewShown | undefined;
  private toldText: string | undefined;
  private sentMs = performance.now();
  private latest: { overview: OverviewShown; atMs: number; text?: string } | undefined;
  private computing: Promise<OverviewShown> | undefined;
  /** Runs from a change until the overview is computed for it. */
  private soon: NodeJS.Timeout | undefined;

  constructor(compute: () => Promise<OverviewShown>) {
    this.compute = compute;
  }

  /** At most a second old. */
  async read(): Promise<OverviewShown> {
    const { latest } = this;
    if (latest !== undefined && performance.now() - latest.atMs < OVERVIEW_EVERY_MS) return latest.overview;
    return this.refresh();
  }

  /** The same as JSON: those who ask within a second share the text. */
  async readText(): Promise<string> {
    const overview = await this.read();
    const { latest } = this;
    if (latest?.overview !== overview) return JSON.stringify(overview);
    latest.text ??= JSON.stringify(overview);
    return latest.text;
  }

  /** The first event is the whole. `leave` must be called when nobody reads any more. */
  async join(): Promise<{ listener: Listener; leave: () => void }> {
    const listener: Listener = { waiting: [], wake: () => {} };
    // Before the others know it, it must have what they have.
    if (this.told === undefined) {
      const overview = await this.read();
      this.told ??= overview;
    }
    listener.waiting.push(this.whole());
    this.listeners.add(listener);
    this.stopTicks ??= every(OVERVIEW_EVERY_MS, "the overview", () => this.tick());
    return { listener, leave: () => this.leave(listener) };
  }

  /** A request has changed something: those who follow see it now, and not after the rest of the second. */
  changed(): void {
    if (this.stopTicks === undefined) return;
    this.soon ??= setTimeout(() => {
      this.soon = undefined;
      contain("the overview", async () => {
        // It may have read what was there before the change. Whoever began it gets its error.
        await this.computing?.catch(() => {});
        await this.tick();
      });
    }, OVERVIEW_SOON_MS).unref();
  }

  private leave(listener: Listener): void {
    this.listeners.delete(listener);
    if (this.listeners.size > 0) return;
    this.stopTicks?.();
    this.stopTicks = undefined;
    this.tell(undefined);
  }

  private tell(overview: OverviewShown | undefined): void {
    this.told = overview;
    this.toldText = undefined;
  }

  /** Those that come together share the text. */
  private whole(): string {
    this.toldText ??= eventText("overview", this.told!);
    return this.toldText;
  }

  private async tick(): Promise<void> {
    // Before a proxy takes the connection for a dead one. The next tick may be too late.
    if (performance.now() - this.sentMs >= STREAM_HEARTBEAT_MS - 2 * OVERVIEW_EVERY_MS)
      this.send(": nothing has changed\n\n");
    // The one before takes longer than a second.
    if (this.computing !== undefined) return;
    const after = await this.refresh().catch((error: unknown) => {
      // The next one says that the database is away.
      if (databaseError(error) === undefined) throw error;
    });
    const before = this.told;
    // All have left meanwhile.
    if (after === undefined || before === undefined || this.listeners.size === 0) return;
    const changes = changesBetween(before, after);
    if (changes === undefined) return;
    this.tell(after);
    this.send(eventText("changes", changes));
  }

  private send(text: string): void {
    this.sentMs = performance.now();
    for (const listener of this.listeners) {
      if (listener.waiting.length < OVERVIEW_BEHIND_MAX) listener.waiting.push(text);
      else listener.waiting.splice(0, listener.waiting.length, this.whole());
      listener.wake();
    }
  }

  private refresh(): Promise<OverviewShown> {
    this.computing ??= this.compute()
      .then((overview) => {
        this.latest = { overview, atMs: performance.now() };
        return overview;
      })
      .finally(() => {
        this.computing = undefined;
      });
    return this.computing;
  }
}

function eventText(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
