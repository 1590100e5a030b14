/**
 * What happened to an API, for those who later ask why it became slow: new versions, rollbacks, and replicas that ended
 * unexpectedly. Kept for two weeks. Deaths within a minute share a row, so a crash loop adds at most one a minute.
 */
import type { DoneBy } from "../contracts/keys.ts";
import { CHANGES_READ_MAX } from "../contracts/limits/database.ts";
import type { Statements } from "../database/database.ts";
import { minuteOf } from "./steps.ts";

export type ChangeKind = "deployed" | "rolled_back" | "replica_ended";

export interface ChangeRow {
  /** Unix seconds: of a version its second, of replicas the start of the minute. */
  at_s: number;
  kind: ChangeKind;
  /** How often it happened. */
  times: number;
  /** Of a version: its id. Of replicas: how the last one ended. */
  detail: string;
  /** Of a version: the id of the one before; null for the first. */
  former: string | null;
  /** Of a version: who deployed it or went back to it. */
  by_id: string | null;
  by_name: string | null;
}

const NOTE = `INSERT INTO api_changes (api_name, at_s, kind, times, detail, former, by_id, by_name)
  VALUES (?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (api_name, at_s, kind) DO UPDATE SET times = api_changes.times + 1,
    detail = excluded.detail, by_id = excluded.by_id, by_name = excluded.by_name`;
const COLUMNS = "at_s, kind, times, detail, former, by_id, by_name";

/** In the transaction that makes it the current version. */
export async function noteVersion(
  tx: Statements,
  { api, id, former, by }: { api: string; id: string; former: string | undefined; by: DoneBy },
  kind: "deployed" | "rolled_back",
  nowS: number,
): Promise<void> {
  if (id !== former) await tx.run(NOTE, [api, Math.floor(nowS), kind, id, former ?? null, by.id, by.name]);
}

/** A replica that served ended, and nobody had asked it to. */
export async function noteReplicaEnd(db: Statements, api: string, how: string, nowS: number): Promise<void> {
  const deployed = await db.all("SELECT name FROM apis WHERE name = ?", [api]);
  if (deployed.length > 0) await db.run(NOTE, [api, minuteOf(nowS), "replica_ended", how, null, null, null]);
}

/** In order of time, from `fromS` to before `toS`; the newest, if there are very many. */
export async function changesIn(
  db: Statements,
  api: string,
  { fromS, toS }: { fromS: number; toS: number },
): Promise<ChangeRow[]> {
  const rows = await db.all<ChangeRow>(
    `SELECT ${COLUMNS} FROM api_changes WHERE api_name = ? AND at_s >= ? AND at_s < ?
     ORDER BY at_s DESC LIMIT ${CHANGES_READ_MAX}`,
    [api, Math.floor(fromS), Math.ceil(toS)],
  );
  return rows.reverse();
}

/**
 * All that are kept, the newest first. Versions are read for themselves: the ends of replicas of a crash loop would leave
 * no place for them.
 */
export async function keptChanges(db: Statements, api: string): Promise<ChangeRow[]> {
  const some = (which: string) =>
    db.all<ChangeRow>(
      `SELECT ${COLUMNS} FROM api_changes WHERE api_name = ? AND ${which}
       ORDER BY at_s DESC LIMIT ${CHANGES_READ_MAX}`,
      [api],
    );
  const rows = [...(await some("kind <> 'replica_ended'")), ...(await some("kind = 'replica_ended'"))];
  return rows.sort((a, b) => b.at_s - a.at_s);
}
