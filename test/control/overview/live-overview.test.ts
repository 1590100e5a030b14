/** The overview that many follow: when it is computed, and what those who follow it are told. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { OverviewShown } from "../../../src/contracts/http/overview-operations.ts";
import { OVERVIEW_SOON_MS, STREAM_HEARTBEAT_MS } from "../../../src/contracts/limits/responses.ts";
import { LiveOverview } from "../../../src/control/overview/live-overview.ts";

/** Longer than until it is computed for a change, and shorter than until the next second's. */
const SOON_MS = OVERVIEW_SOON_MS * 2;

describe("the overview after a change", () => {
  let running = 0;
  let computed = 0;
  /** Lets a computation end. Without it, it ends at once. */
  let held: Promise<void> | undefined;
  const live = () =>
    new LiveOverview(async () => {
      computed++;
      const parts = { server: {}, compute: {}, apis: [], jobs: [], attention: [] };
      const overview = { time: "", ...parts, job_counts: { running } } as unknown as OverviewShown;
      await held;
      return overview;
    });

  beforeEach(() => {
    [running, computed, held] = [0, 0, undefined];
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  it("is computed for those who follow it, once for changes that come together", async () => {
    const overview = live();
    const { listener, leave } = await overview.join();
    expect([computed, listener.waiting.length]).toEqual([1, 1]);
    running = 1;
    for (let n = 0; n < 50; n++) overview.changed();
    await vi.advanceTimersByTimeAsync(SOON_MS);
    expect(computed).toBe(2);
    expect(listener.waiting[1]).toContain('"job_counts":{"running":1}');
    leave();
  });

  it("is computed again if it was being computed when the change came", async () => {
    const overview = live();
    const { listener, leave } = await overview.join();
    let end = () => {};
    held = new Promise((resolve) => (end = resolve));
    overview.changed();
    await vi.advanceTimersByTimeAsync(SOON_MS);
    running = 2;
    overview.changed();
    await vi.advanceTimersByTimeAsync(SOON_MS);
    expect(computed).toBe(2);
    end();
    await vi.advanceTimersByTimeAsync(0);
    expect(listener.waiting.at(-1)).toContain('"running":2');
    leave();
  });

  it("is silent for no longer than a proxy waits", async () => {
    const { listener, leave } = await live().join();
    await vi.advanceTimersByTimeAsync(STREAM_HEARTBEAT_MS);
    expect(listener.waiting.slice(1)).toEqual([": nothing has changed\n\n"]);
    leave();
  });

  it("is not computed if nobody follows it", async () => {
    const overview = live();
    overview.changed();
    const { leave } = await overview.join();
    leave();
    overview.changed();
    await vi.advanceTimersByTimeAsync(SOON_MS);
    expect(computed).toBe(1);
  });
});
