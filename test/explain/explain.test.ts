/** src/explain: the order of findings, their words, and the percentiles behind them. */
import { describe, expect, it } from "vitest";
import { inWords } from "../../src/cli/dashboard/explain.ts";
import { percentileOf } from "../../src/contracts/reports.ts";
import { since } from "../../src/explain/durations.ts";
import { explanation, found } from "../../src/explain/finding.ts";
import { amount, bytesPerSecond, count, duration, percent, size } from "../../src/explain/words.ts";
import { tallyOf } from "../harness/facts.ts";

const ABOUT = { api_name: "x", job_id: null };

describe("an explanation", () => {
  it("puts errors first, and counts the others in the summary", () => {
    const findings = [
      found("starting", "info", "soon"),
      found("straggler", "warning", "late"),
      found("starved", "warning", "idle"),
      found("disk_full", "error", "full"),
    ];
    const explained = explanation(ABOUT, findings, () => found("all_well", "info", "well"));
    expect(explained.findings.map(({ title }) => title)).toEqual(["full", "late", "idle", "soon"]);
    expect(explained.summary).toBe("full; 2 more findings");
  });

  it("says beside information that nothing is wrong", () => {
    const well = () => found("all_well", "info", "well");
    const explained = explanation(ABOUT, [found("waking", "info", "soon")], well);
    expect(explained.findings.map(({ cause }) => cause)).toEqual(["waking", "all_well"]);
  });

  it("has numbers that people read", () => {
    expect([0.0123, 3.44, 125, 7800].map(duration)).toEqual(["12 ms", "3.4 s", "2m 5s", "2h 10m"]);
    expect([percent(999, 1000), percent(1, 1000), percent(0, 5), percent(3, 4)]).toEqual([
      "99 %",
      "< 1 %",
      "0 %",
      "75 %",
    ]);
    expect([count(1, "batch"), count(2, "batch"), count(1200, "request")]).toEqual([
      "1 batch",
      "2 batches",
      "1,200 requests",
    ]);
    expect([size(512), size(5 * 1024 ** 2), size(1.5 * 1024 ** 3)]).toEqual(["1 KiB", "5 MiB", "1.5 GiB"]);
    expect([bytesPerSecond(3e6, 1), bytesPerSecond(5e4, 10)]).toEqual(["3 MB/s", "5 kB/s"]);
    expect(amount({ cpus: 0.2, memoryBytes: 1024 ** 3, gpus: 1 })).toBe("0.2 CPU, 1 GiB and 1 GPU");
  });

  it("has percentiles from buckets, and of what was added alone", () => {
    const fast = tallyOf(Array.from({ length: 90 }, () => ({ wait: 0, took: 0.04 })));
    const all = tallyOf([...Array.from({ length: 90 }, () => ({ wait: 0, took: 0.04 })), ...slow(10)]);
    expect(percentileOf(fast.duration.buckets, 0.99)).toBeCloseTo(0.05, 2);
    expect(percentileOf(all.duration.buckets, 0.95)).toBeGreaterThan(2.5);
    expect(percentileOf(since(all.duration, fast.duration).buckets, 0.01)).toBeGreaterThan(2.5);
    expect(percentileOf(tallyOf([]).duration.buckets, 0.5)).toBeNull();
  });

  it("fits into 80 columns", () => {
    const long = "word ".repeat(40).trim();
    const finding = found("starved", "warning", long, { evidence: [long, "x".repeat(90)], cure: long });
    const lines = inWords(finding).split("\n");
    expect(lines.filter((line) => line.length > 80)).toEqual([expect.stringContaining("x".repeat(90))]);
    expect(lines.join(" ").match(/word/g)).toHaveLength(120);
  });
});

function slow(times: number) {
  return Array.from({ length: times }, () => ({ wait: 0, took: 4 }));
}
