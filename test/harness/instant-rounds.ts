import { afterEach, beforeEach, vi } from "vitest";

/**
 * In the tests of this file no time passes, so a round of the scheduler takes none. On a busy machine one takes longer
 * than `COMPUTE_ROUND_SHORT_MS`; the next comes after a pause then, and not in the same turn of the event loop.
 */
export function withInstantRounds(): void {
  beforeEach(() => {
    vi.spyOn(performance, "now").mockReturnValue(0);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
}
