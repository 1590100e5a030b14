/** The rows of levels: written when a minute ends in which they changed, all of them in one transaction. */
import { type Database, first, type Statements } from "../database/database.ts";
import type { LevelRow } from "./levels.ts";
import type { Window } from "./steps.ts";

const LAST = ["replicas", "in_flight", "queue_depth", "cpus"] as const;
const HIGHEST = ["in_flight_max", "queue_depth_max", "cpus_max"] as const;
export const LEVEL_COLUMNS = [...LAST, ...HIGHEST];
const SELECTED = `at_s, ${LEVEL_COLUMNS.join(", ")}`;
/** A restart within a minute has two rows of it. */
const ON_CONFLICT = `ON CONFLICT (api_name, at_s, step_s) DO UPDATE SET ${[
  ...LAST.map((name) => `${name} = excluded.${name}`),
  ...HIGHEST.map(
    (name) =>
      `${name} = CASE WHEN series_levels.${name} > excluded.${name} OR excluded.${name} IS NULL THEN series_levels.${name} ELSE excluded.${name} END`,
  ),
].join(", ")}`;

/** The statement that writes a row; its parameters are the key and LEVEL_COLUMNS. */
const WRITE_LEVELS = `INSERT INTO series_levels (api_name, at_s, step_s, ${LEVEL_COLUMNS.join(", ")})
  VALUES (?, ?, ?, ${LEVEL_COLUMNS.map(() => "?").join(", ")}) ${ON_CONFLICT}`;

export async function writeLevels(tx: Statements, api: string, stepS: number, row: LevelRow): Promise<void> {
  await tx.run(WRITE_LEVELS, [api, row.at_s, stepS, ...LEVEL_COLUMNS.map((name) => row[name])]);
}

/** Writes rows of minutes by API. Deleted APIs get none. */
export async function saveLevels(
  db: Database,
  rows: readonly (readonly [api: string, row: LevelRow])[],
): Promise<void> {
  await db.transaction(async (tx) => {
    const names = await tx.all<{ name: string }>("SELECT name FROM apis");
    const deployed = new Set(["", ...names.map(({ name }) => name)]);
    for (const [api, row] of rows) if (deployed.has(api)) await writeLevels(tx, api, 60, row);
  });
}

/** The newest row of each API and of the server. */
export async function newestLevels(db: Statements): Promise<Map<string, LevelRow>> {
  const rows = await db.all<LevelRow & { api_name: string }>(
    `SELECT api_name, ${SELECTED} FROM series_levels s
     WHERE at_s = (SELECT MAX(at_s) FROM series_levels t WHERE t.api_name = s.api_name) ORDER BY step_s DESC`,
  );
  return new Map(rows.map(({ api_name, ...row }) => [api_name, row]));
}

/** The rows of a window, and before them the one that holds at its start. */
export async function levelRows(db: Statements, api: string, { startS, endS }: Window): Promise<LevelRow[]> {
  const before = await first<LevelRow>(
    db,
    `SELECT ${SELECTED} FROM series_levels WHERE api_name = ? AND at_s < ? ORDER BY at_s DESC, step_s LIMIT 1`,
    [api, startS],
  );
  const rows = await db.all<LevelRow>(
    `SELECT ${SELECTED} FROM series_levels WHERE api_name = ? AND at_s >= ? AND at_s < ? ORDER BY at_s, step_s DESC`,
    [api, startS, endS],
  );
  return before === undefined ? rows : [before, ...rows];
}

/** Since when there are series: the server's first row. Undefined if there is none yet. */
export async function seriesBegan(db: Statements): Promise<number | undefined> {
  const sql = "SELECT MIN(at_s) AS at_s FROM series_levels WHERE api_name = ''";
  return (await first<{ at_s: number | null }>(db, sql))?.at_s ?? undefined;
}
