/**
 * Keeps the series bounded. The minutes of an hour that is a day old become one row; hours go after two weeks. Each
 * commit has few rows, and moves whole hours of a series: a kill leaves each minute in exactly one row.
 */
import { HOURS_KEPT_S, SERIES_DELETED_AT_ONCE, SERIES_ROLLED_AT_ONCE } from "../contracts/limits/database.ts";
import { type Database, first, type Statements } from "../database/database.ts";
import { LEVEL_COLUMNS, writeLevels } from "./level-rows.ts";
import type { LevelRow } from "./levels.ts";
import { REQUEST_COUNTS } from "./request-rows.ts";
import { HOUR_S, minutesFrom, startOf } from "./steps.ts";

interface Table {
  name: string;
  /** The columns that name a series. */
  key: readonly string[];
  /** Writes the row of the hour, from its minutes. */
  roll: (tx: Statements, key: readonly string[], hourS: number) => Promise<void>;
}

const TABLES: readonly Table[] = [
  {
    name: "series_requests",
    key: ["api_name"],
    roll: rollSums("series_requests", ["api_name"], REQUEST_COUNTS),
  },
  { name: "series_levels", key: ["api_name"], roll: rollLevels },
  {
    name: "series_rejections",
    key: ["api_name", "code"],
    roll: rollSums("series_rejections", ["api_name", "code"], ["requests"]),
  },
  {
    name: "series_batches",
    key: ["api_name", "job_id"],
    roll: rollSums("series_batches", ["api_name", "job_id"], ["succeeded", "failed"]),
  },
];
const matching = (key: readonly string[]) => key.map((name) => `${name} = ?`).join(" AND ");
const MINUTES_OF_HOUR = "step_s = 60 AND at_s >= ? AND at_s < ?";

/** Also removes what APIs left whose end came between two commits. `isStopped`: the rest is for the next time. */
export async function pruneSeries(db: Database, nowS: number, isStopped: () => boolean): Promise<void> {
  for (const table of TABLES) {
    while (!isStopped() && (await rollOldest(db, table, minutesFrom(nowS))));
    while (!isStopped() && (await deleteSome(db, table, nowS - HOURS_KEPT_S)) > 0);
  }
  const old = `SELECT api_name, at_s, kind FROM api_changes WHERE at_s < ? LIMIT ${SERIES_DELETED_AT_ONCE}`;
  const sql = `DELETE FROM api_changes WHERE (api_name, at_s, kind) IN (${old})`;
  while (!isStopped() && (await db.run(sql, [nowS - HOURS_KEPT_S])) > 0);
}

/** Rolls up some series of the oldest hour. False if no minute is old enough. */
async function rollOldest(db: Database, { name, key, roll }: Table, beforeS: number): Promise<boolean> {
  const sql = `SELECT MIN(at_s) AS at_s FROM ${name} WHERE step_s = 60 AND at_s < ?`;
  const oldest = (await first<{ at_s: number | null }>(db, sql, [beforeS]))?.at_s ?? undefined;
  if (oldest === undefined) return false;
  const hourS = startOf(oldest, HOUR_S);
  const hour = [hourS, hourS + HOUR_S];
  await db.transaction(async (tx) => {
    const some = await tx.all<Record<string, string>>(
      `SELECT DISTINCT ${key.join(", ")} FROM ${name} WHERE ${MINUTES_OF_HOUR} LIMIT ${SERIES_ROLLED_AT_ONCE}`,
      hour,
    );
    for (const row of some) {
      const values = key.map((column) => row[column]!);
      await roll(tx, values, hourS);
      await tx.run(`DELETE FROM ${name} WHERE ${matching(key)} AND ${MINUTES_OF_HOUR}`, [...values, ...hour]);
    }
  });
  return true;
}

/** For counts. If the clock was set back, minutes may come after their hour's row was written: they are added to it. */
function rollSums(name: string, key: readonly string[], counts: readonly string[]): Table["roll"] {
  const sums = counts.map((count) => `SUM(${count})`).join(", ");
  const added = counts.map((count) => `${count} = ${name}.${count} + excluded.${count}`).join(", ");
  return async (tx, values, hourS) => {
    await tx.run(
      `INSERT INTO ${name} (${key.join(", ")}, at_s, step_s, ${counts.join(", ")})
       SELECT ${key.join(", ")}, ${hourS}, ${HOUR_S}, ${sums} FROM ${name}
       WHERE ${matching(key)} AND ${MINUTES_OF_HOUR} GROUP BY ${key.join(", ")}
       ON CONFLICT (${key.join(", ")}, at_s, step_s) DO UPDATE SET ${added}`,
      [...values, hourS, hourS + HOUR_S],
    );
  };
}

/** The last levels of the hour, and the highest. */
async function rollLevels(tx: Statements, [api]: readonly string[], hourS: number): Promise<void> {
  const where = `api_name = ? AND ${MINUTES_OF_HOUR}`;
  const hour = [api!, hourS, hourS + HOUR_S];
  const last = await first<LevelRow>(
    tx,
    `SELECT at_s, ${LEVEL_COLUMNS.join(", ")} FROM series_levels WHERE ${where} ORDER BY at_s DESC LIMIT 1`,
    hour,
  );
  const highest = await first<Pick<LevelRow, "in_flight_max" | "queue_depth_max" | "cpus_max">>(
    tx,
    `SELECT MAX(in_flight_max) AS in_flight_max, MAX(queue_depth_max) AS queue_depth_max, MAX(cpus_max) AS cpus_max
     FROM series_levels WHERE ${where}`,
    hour,
  );
  await writeLevels(tx, api!, HOUR_S, { ...last!, ...highest, at_s: hourS });
}

/** The newest levels that are too old stay: they may still hold. */
function deleteSome(db: Database, { name, key }: Table, beforeS: number): Promise<number> {
  const columns = [...key, "at_s", "step_s"].join(", ");
  const isReplaced =
    name === "series_levels"
      ? `AND EXISTS (SELECT 1 FROM series_levels later WHERE later.api_name = series_levels.api_name
           AND later.at_s > series_levels.at_s AND later.at_s < ${beforeS})`
      : "";
  return db.run(
    `DELETE FROM ${name} WHERE (${columns}) IN (SELECT ${columns} FROM ${name}
       WHERE step_s = ${HOUR_S} AND at_s < ? ${isReplaced} LIMIT ${SERIES_DELETED_AT_ONCE})`,
    [beforeS],
  );
}
