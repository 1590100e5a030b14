/** The recorder of levels over a real database, with a clock of its own. */
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "../../src/base/log.ts";
import type { Database } from "../../src/database/database.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { levelRows } from "../../src/series/level-rows.ts";
import { type Levels, UNKNOWN } from "../../src/series/levels.ts";
import { SeriesRecorder } from "../../src/series/recorder.ts";
import { eventually } from "../harness/eventually.ts";
import { type TemporaryDatabase, temporaryDatabase } from "../harness/temporary-database.ts";

const NOON_S = Date.UTC(2026, 10, 24, 12) / 1000;
const minute = (at: number) => NOON_S + 60 * at;

describe("the recorder of levels", () => {
  let temporary: TemporaryDatabase;
  let nowS: number;
  let levels: Map<string, Levels>;
  let recorders: SeriesRecorder[];
  beforeEach(async () => {
    temporary = await temporaryDatabase();
    recorders = [];
    nowS = minute(0);
    await deploy(temporary.db, "a");
    set(1, 0);
  });
  afterEach(async () => {
    for (const recorder of recorders) await recorder.stop();
    await temporary.remove();
  });

  const deploy = (db: Database, name: string) =>
    db.run("INSERT INTO apis (name, kind, api_id, deployed_time) VALUES (?, 'RealtimeAPI', 'v', 't')", [
      name,
    ]);
  const set = (replicas: number, in_flight: number) => {
    const now = { ...UNKNOWN, replicas, in_flight, queue_depth: 0 };
    levels = new Map([["a", now]]).set("", { ...now, cpus: replicas });
  };
  const started = async (db = temporary.db) => {
    const recorder = new SeriesRecorder({
      db,
      log: openLog("test"),
      levels: () => levels,
      nowMs: () => nowS * 1000,
    });
    recorders.push(recorder);
    await recorder.start();
    return recorder;
  };
  const rows = async (api = "a") => {
    const all = await levelRows(temporary.db, api, { startS: 0, endS: minute(1_000), stepS: 60 });
    return all.map(({ at_s, replicas, in_flight, in_flight_max }) => [
      at_s,
      replicas,
      in_flight,
      in_flight_max,
    ]);
  };
  /** A sample at a time. */
  const sample = (recorder: SeriesRecorder, timeS: number) => {
    nowS = timeS;
    recorder.sample();
  };
  const saved = (count: number) => eventually(`${count} rows`, async () => (await rows()).length === count);

  it("writes a minute once it is over, with its last and its highest levels", async () => {
    const recorder = await started();
    set(1, 9);
    sample(recorder, minute(0) + 20);
    set(2, 4);
    sample(recorder, minute(0) + 40);
    expect(recorder.unsaved("a")).toMatchObject([{ at_s: minute(0), in_flight: 4, in_flight_max: 9 }]);
    expect(await rows()).toEqual([]);
    set(2, 0);
    sample(recorder, minute(1));
    await saved(1);
    sample(recorder, minute(2));
    await saved(2);
    expect(await rows()).toEqual([
      [minute(0), 2, 4, 9],
      [minute(1), 2, 0, 0],
    ]);
  });

  it("writes nothing while nothing changes", async () => {
    const recorder = await started();
    sample(recorder, minute(1));
    await saved(1);
    const beside = openSqliteDatabase(join(temporary.directory, "quern.db"));
    const version = async () => (await beside.all("PRAGMA data_version"))[0];
    const before = await version();
    for (let at = 2; at < 200; at++) {
      sample(recorder, minute(at));
      // The work of the minute before.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder.idle();
    expect(await version()).toEqual(before);
    set(3, 0);
    sample(recorder, minute(200));
    sample(recorder, minute(201));
    await saved(2);
    expect(await version()).not.toEqual(before);
    await beside.close();
  });

  it("says when nothing was known: from a stop until the next start", async () => {
    await (await started()).stop();
    expect(await rows()).toEqual([[minute(0), null, null, 0]]);
    nowS = minute(10);
    const next = await started();
    sample(next, minute(11));
    await saved(2);
    expect((await rows())[1]).toEqual([minute(10), 1, 0, 0]);
  });

  it("goes on after a kill, and repeats nothing", async () => {
    const killed = await started();
    set(2, 0);
    sample(killed, minute(1));
    await saved(1);
    sample(killed, minute(2));
    await saved(2);
    nowS = minute(5);
    const next = await started();
    for (const at of [6, 7, 8]) sample(next, minute(at));
    await next.idle();
    expect(await rows()).toHaveLength(2);
    expect(await rows("")).toHaveLength(2);
  });

  it("saves levels later if the database cannot take them", async () => {
    let isFull = false;
    const db = temporary.db;
    const failing: Database = {
      ...{ all: (sql, params) => db.all(sql, params), run: (sql, params) => db.run(sql, params) },
      transaction: (work) => (isFull ? Promise.reject(new Error("the disk is full")) : db.transaction(work)),
      close: () => db.close(),
    };
    const recorder = await started(failing);
    sample(recorder, minute(1));
    await saved(1);
    isFull = true;
    set(5, 0);
    sample(recorder, minute(1) + 30);
    sample(recorder, minute(2));
    await recorder.idle();
    expect(await rows()).toHaveLength(1);
    isFull = false;
    sample(recorder, minute(3));
    await saved(2);
    expect((await rows())[1]).toEqual([minute(2), 5, 0, 0]);
  });

  it("forgets an API that is gone", async () => {
    const recorder = await started();
    sample(recorder, minute(0) + 1);
    levels.delete("a");
    sample(recorder, minute(0) + 2);
    expect(recorder.unsaved("a")).toEqual([]);
  });
});
