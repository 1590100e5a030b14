/**
 * Finds the jobs of all APIs that match a filter: a page of them, their number, or all their ids. However many jobs
 * there are, a statement looks at some thousand entries of an index, so that others have their turn in between.
 */
import { JOBS_LISTED_AT_ONCE } from "../../contracts/limits/jobs.ts";
import { first, type SqlValue, type Statements } from "../../database/database.ts";
import { JOB_COLUMNS, type JobRow } from "../records/job-rows.ts";
import { type Condition, idBounds, type JobFilter, rangesOf, searchCondition } from "./job-filter.ts";

/** The ids of a range from `from` on and before `before`, newest first. */
interface Scan {
  range: Condition;
  search: Condition | undefined;
  from: string;
  before: string;
}

function scansOf(filter: JobFilter): Scan[] {
  const search = searchCondition(filter);
  return rangesOf(filter).map((range) => ({ range, search, ...idBounds(filter) }));
}

/** One piece of a range: `pieceSql` is the table of its ids. */
function pieceOf({ range, from, before }: Scan): { sql: string; values: SqlValue[] } {
  return {
    sql: `(SELECT job_id, api_name FROM jobs WHERE ${range.sql} AND job_id >= ? AND job_id < ?
           ORDER BY job_id DESC LIMIT ${JOBS_LISTED_AT_ONCE}) AS piece`,
    values: [...range.values, from, before],
  };
}

/** The ids of the newest `limit` jobs that match, before the job `before`. */
export async function newestIds(
  db: Statements,
  filter: JobFilter,
  limit: number,
  before?: string,
): Promise<string[]> {
  let ids: string[] = [];
  for (const scan of scansOf(filter)) {
    // Those before the last of enough newer ones are not shown.
    const from = ids.length < limit ? scan.from : ids.at(-1)!;
    const end = before === undefined || scan.before < before ? scan.before : before;
    const found: string[] = [];
    for await (const some of matching(db, { ...scan, from, before: end }, limit)) {
      found.push(...some);
      if (found.length >= limit) break;
    }
    ids = [...new Set([...ids, ...found])].sort().reverse().slice(0, limit);
  }
  return ids;
}

/** How many match. */
export async function countJobs(db: Statements, filter: JobFilter): Promise<number> {
  let count = 0;
  for (const scan of scansOf(filter))
    for await (const piece of pieces(db, scan)) count += Number(piece.matching);
  return count;
}

/** The ids of all that match, newest first; undefined if they are more than `most`. */
export async function allIds(db: Statements, filter: JobFilter, most: number): Promise<string[] | undefined> {
  const ids = new Set<string>();
  for (const scan of scansOf(filter))
    for await (const some of matching(db, scan, most + 1)) {
      for (const id of some) ids.add(id);
      if (ids.size > most) return undefined;
    }
  return [...ids].sort().reverse();
}

/** Those of these jobs that exist, in the order of `ids`. */
export async function jobsByIds(db: Statements, ids: readonly string[]): Promise<JobRow[]> {
  // PostgreSQL takes no empty list.
  if (ids.length === 0) return [];
  const places = ids.map(() => "?").join(", ");
  const rows = await db.all<JobRow>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE job_id IN (${places})`, ids);
  const byId = new Map(rows.map((row) => [row.job_id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** The newest `limit` ids before `before`, and how many jobs match in all. The first page takes one pass for both. */
export async function pageOfIds(
  db: Statements,
  filter: JobFilter,
  { limit, before }: { limit: number; before: string | undefined },
): Promise<{ ids: string[]; count: number }> {
  if (before !== undefined)
    return { ids: await newestIds(db, filter, limit, before), count: await countJobs(db, filter) };
  const ids = new Set<string>();
  let count = 0;
  for (const scan of scansOf(filter)) {
    let found = 0;
    for await (const piece of pieces(db, scan)) {
      count += Number(piece.matching);
      const some = found < limit ? await idsOf(db, piece, limit - found) : [];
      found += some.length;
      for (const id of some) ids.add(id);
    }
  }
  return { ids: [...ids].sort().reverse().slice(0, limit), count };
}

interface Piece {
  scanned: number;
  matching: number;
  /** The last id of the piece; null if it is empty. */
  last: string | null;
}

type ScannedPiece = Piece & { scan: Scan };

/** Each piece of a range, counted. */
async function* pieces(db: Statements, scan: Scan): AsyncGenerator<ScannedPiece> {
  const { search } = scan;
  const counted = search === undefined ? "count(*)" : `sum(CASE WHEN ${search.sql} THEN 1 ELSE 0 END)`;
  for (let { before } = scan; ; ) {
    const { sql, values } = pieceOf({ ...scan, before });
    const piece = (await first<Piece>(
      db,
      `SELECT count(*) AS scanned, ${counted} AS matching, min(job_id) AS last FROM ${sql}`,
      [...(search?.values ?? []), ...values],
    ))!;
    if (piece.last === null) return;
    yield { ...piece, scan: { ...scan, before } };
    if (Number(piece.scanned) < JOBS_LISTED_AT_ONCE) return;
    before = piece.last;
  }
}

/** The ids of a range that match, up to `limit` of each piece. */
async function* matching(db: Statements, scan: Scan, limit: number): AsyncGenerator<string[]> {
  for await (const piece of pieces(db, scan)) yield await idsOf(db, piece, limit);
}

async function idsOf(db: Statements, { matching: count, scan }: ScannedPiece, limit: number) {
  if (Number(count) === 0) return [];
  const { sql, values } = pieceOf(scan);
  const where = scan.search === undefined ? "" : `WHERE ${scan.search.sql}`;
  const rows = await db.all<{ job_id: string }>(
    `SELECT job_id FROM ${sql} ${where} ORDER BY job_id DESC LIMIT ?`,
    [...values, ...(scan.search?.values ?? []), limit],
  );
  return rows.map(({ job_id }) => job_id);
}
