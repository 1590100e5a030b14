import { describe, expect, it } from "vitest";
import { workerSamples } from "../../src/control/worker-metrics.ts";

describe("the memory of workers", () => {
  it("is one number for each API, however many workers it has", () => {
    const samples = workerSamples([
      { api: "a", bytes: 100, limitBytes: 400 },
      { api: "b", bytes: 7, limitBytes: undefined },
      { api: "a", bytes: 300, limitBytes: 1_000 },
    ]);
    expect(samples).toEqual({
      quern_worker_memory_bytes: [
        { labels: { api: "a" }, value: 400 },
        { labels: { api: "b" }, value: 7 },
      ],
      quern_worker_memory_max_bytes: [
        { labels: { api: "a" }, value: 300 },
        { labels: { api: "b" }, value: 7 },
      ],
      quern_worker_memory_used_ratio: [{ labels: { api: "a" }, value: 0.3 }],
    });
  });
});
