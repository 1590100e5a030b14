/** Brings the schema of a database to this release's version. A data directory of a newer Quern is refused. */
import { CannotStart } from "../contracts/cannot-start.ts";
import { MOVED_AT_ONCE_MS, MOVED_TOLD_MS } from "../contracts/limits/database.ts";
import { type Database, first, type Statements } from "./database.ts";
import type { MovingStep } from "./schema/schema-step.ts";
import { SCHEMA_STEPS } from "./schema-steps.ts";

/** 0 if there are no tables yet. Changes nothing. */
export async function schemaVersion(db: Statements): Promise<number> {
  try {
    return (await first<{ version: number }>(db, "SELECT version FROM schema_version"))?.version ?? 0;
  } catch (error) {
    if (isNoTable(error)) return 0;
    throw error;
  }
}

/** As SQLite and PostgreSQL report it. */
function isNoTable(error: unknown): boolean {
  return /no such table/.test((error as Error).message) || (error as { code?: unknown }).code === "42P01";
}

/** Called now and then while a migration moves rows, with the number of those that it has moved. */
export type OnMoved = (rows: number) => void;

/** The last row that a migration has moved, and how many there were. */
interface Moved {
  last: string;
  rows: number;
}

/** Brings the schema to this release's version. Throws when the data directory is newer than the program. */
export async function migrate(db: Database, onMoved: OnMoved = () => {}): Promise<void> {
  const version = await schemaVersion(db);
  if (version > SCHEMA_STEPS.length) throw newerData(version);
  for (let next = version; next < SCHEMA_STEPS.length; next++) {
    const step = SCHEMA_STEPS[next]!;
    const statements = "move" in step ? [] : step;
    if ("move" in step) await moveRows(db, step, onMoved);
    await db.transaction(async (tx) => {
      await tx.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)");
      for (const statement of statements) await tx.run(statement);
      await tx.run("DELETE FROM schema_version");
      await tx.run("INSERT INTO schema_version VALUES (?)", [next + 1]);
    });
  }
}

/** `otherCure`: what may be done instead, as a sentence. */
export function newerData(version: number, otherCure = ""): CannotStart {
  const message = `the data directory has schema version ${version}, this Quern knows up to ${SCHEMA_STEPS.length}: start it with the newer Quern that wrote it${otherCure}`;
  return new CannotStart("data_directory_newer", message);
}

async function moveRows(db: Database, step: MovingStep, onMoved: OnMoved): Promise<void> {
  let toldMs = performance.now();
  for (let at: Moved | undefined = { last: "", rows: 0 }; at !== undefined; ) {
    const from: Moved = at;
    at = await db.transaction((tx) => moveSome(tx, step, from));
    if (at === undefined || performance.now() - toldMs < MOVED_TOLD_MS) continue;
    onMoved(at.rows);
    toldMs = performance.now();
  }
}

/** Resolves to how far it came; undefined if no row is left. */
async function moveSome(tx: Statements, { next, move }: MovingStep, from: Moved): Promise<Moved | undefined> {
  const startMs = performance.now();
  for (let { last, rows } = from; ; ) {
    const row = await first<{ id: string }>(tx, next, [last]);
    if (row === undefined) return undefined;
    for (const statement of move) await tx.run(statement, [row.id]);
    last = row.id;
    rows++;
    if (performance.now() - startMs > MOVED_AT_ONCE_MS) return { last, rows };
  }
}
