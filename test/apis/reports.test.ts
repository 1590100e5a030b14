/** Reports of gateways: bad numbers of one API do not lose those of another. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Reports } from "../../src/apis/reports.ts";
import { openLog } from "../../src/base/log.ts";
import { CLASSES_COUNTED_MAX } from "../../src/contracts/limits/predictions.ts";
import { emptyTally, finite, readReport } from "../../src/contracts/reports.ts";
import { migrate } from "../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { RequestTally } from "../../src/gateway/replicas/tally.ts";

describe("a report", () => {
  const api = (name: string) => ({ name, in_flight: 3, waiting: 1, tally: emptyTally() });

  it("is read for each API separately", () => {
    const sick = { ...api("sick"), tally: { ...emptyTally(), values: { count: 1, sum: null } } };
    const { report, refused } = readReport({ gateway: "g", apis: [sick, api("well"), null] });
    expect(report).toEqual({ gateway: "g", apis: [api("well")] });
    expect(refused).toEqual([
      expect.stringContaining("sick: tally.values.sum"),
      expect.stringContaining("undefined"),
    ]);
  });

  it("has numbers and names that survive JSON, for any prediction", () => {
    const tally = new RequestTally();
    tally.predicted({ values: [1e308, 1e308, 1e308, Number.POSITIVE_INFINITY, Number.NaN] });
    tally.predicted({ classes: ["constructor", "__proto__", "constructor", "x".repeat(129)] });
    const wire = JSON.parse(JSON.stringify({ gateway: "g", apis: [{ ...api("a"), tally: tally.counts }] }));
    const { report, refused } = readReport(wire);
    expect(refused).toEqual([]);
    expect(report.apis[0]!.tally).toMatchObject({
      classes: [
        ["constructor", 2],
        ["__proto__", 1],
        ["(others)", 1],
      ],
      values: { count: 3, sum: Number.MAX_VALUE, least: 1e308, most: 1e308 },
    });
    expect(finite(-1e308 - 1e308)).toBe(-Number.MAX_VALUE);
  });

  it("counts a bounded number of classes separately", () => {
    const tally = new RequestTally();
    for (let i = 0; i < 1000; i++) tally.predicted({ classes: [`class ${i}`] });
    const { classes } = tally.counts;
    expect(classes.length).toBe(CLASSES_COUNTED_MAX + 1);
    expect(classes.at(-1)).toEqual(["(others)", 1000 - CLASSES_COUNTED_MAX]);
  });
});

it("know what a gateway had counted before the controller started", async () => {
  const db = openSqliteDatabase(":memory:");
  await migrate(db);
  const report = (count: number) => {
    const tally = { ...emptyTally(), answers: { "2xx": count } };
    return { gateway: "g", apis: [{ name: "a", in_flight: 0, waiting: 0, tally }] };
  };
  await new Reports(db, openLog("test")).take(report(7));
  const later = new Reports(db, openLog("test"));
  await later.start();
  expect(later.totalBefore("a")).toBeUndefined();
  await later.take(report(9));
  expect(later.totalBefore("a")!.answers).toEqual({ "2xx": 7 });
  await later.stop();
  await db.close();
});

describe("the requests that a gateway said were under way", () => {
  let nowMs = 0;
  beforeEach(() => {
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("are over ten seconds after its last word, and its totals are not", async () => {
    const db = openSqliteDatabase(":memory:");
    await migrate(db);
    const reports = new Reports(db, openLog("test"));
    const tally = { ...emptyTally(), answers: { "200": 7 } };
    await reports.take({ gateway: "g", apis: [{ name: "a", in_flight: 3, waiting: 1, tally }] });
    const { inFlight, waiting } = reports.totals();
    expect([inFlight.get("a"), waiting.get("a")]).toEqual([3, 1]);
    for (const silentMs of [11_000, 190_000]) {
      nowMs = silentMs;
      const later = reports.totals();
      expect([later.inFlight.get("a"), later.waiting.get("a")]).toEqual([undefined, undefined]);
      expect(later.tallies.get("a")!.answers).toEqual({ "200": 7 });
    }
    await db.close();
  });
});
