/** src/control/explain: the requests of the last minutes, and the exceptions at the end of a log. */
import { expect, it } from "vitest";
import type { Reports } from "../../../src/apis/reports.ts";
import type { Tally } from "../../../src/contracts/reports.ts";
import { exceptionsIn } from "../../../src/control/explain/logged-exceptions.ts";
import { TrafficSamples } from "../../../src/control/explain/traffic-samples.ts";
import { countOf } from "../../../src/explain/durations.ts";
import { tallyOf } from "../../harness/facts.ts";

it("forgets what came more than five minutes ago", async () => {
  let tally: Tally = tallyOf(requests(100));
  const totals = () => ({ tallies: new Map([["x", tally]]) });
  const totalOf = (name: string) => ({ tally: name === "x" ? tally : undefined, inFlight: 2, waiting: 1 });
  const totalBefore = (name: string) => (name === "x" ? tallyOf(requests(20)) : undefined);
  const recent = new TrafficSamples({ totals, totalOf, totalBefore } as unknown as Reports);
  await recent.start();
  await recent.stop();
  const beganMs = performance.now();
  expect(countOf(recent.of("x").tally.duration)).toBe(80);
  for (let sample = 1; sample <= 10; sample++) recent.sample(beganMs + sample * 30_000);
  tally = tallyOf(requests(103), { rejected: { queue_full: 2 } });
  const { seconds, tally: last, inFlight, waiting } = recent.of("x", beganMs + 305_000);
  expect(seconds).toBeCloseTo(305, 0);
  // Deployed since: what the former version did before the last sample is over.
  expect(countOf(recent.of("x", beganMs + 305_000, beganMs + 301_000).tally.duration)).toBe(3);
  recent.sample(beganMs + 310_000);
  expect(countOf(recent.of("x").tally.duration)).toBe(3);
  expect([countOf(last.duration), inFlight, waiting]).toEqual([83, 2, 1]);
  expect(recent.of("x").tally.rejected).toEqual({ queue_full: 2 });
  expect(countOf(recent.of("unknown").tally.duration)).toBe(0);
});

it("reads the last line of each traceback", () => {
  const time = "2026-11-28T10:00:00.000Z";
  const log = [
    "of a line that was cut",
    "Traceback (most recent call last):",
    '  File "p.py", line 3, in predict',
    "    raise ValueError",
    "ValueError: one",
    "something else",
    "Traceback (most recent call last):",
    "  File",
    "KeyError: 'two'",
  ];
  expect(exceptionsIn(log.map((line) => `${time} ${line}`).join("\n"))).toEqual([
    "ValueError: one",
    "KeyError: 'two'",
  ]);
});

function requests(number: number) {
  return Array.from({ length: number }, () => ({ wait: 0, took: 0.01 }));
}
