/**
 * Reads the batches that have finally failed: in pages, counted by their errors, and those whose worker died. A job may
 * have millions of rows of up to 97 KiB each. So a statement reads an index alone, or a few rows.
 */
import { OneEachTurn } from "../../base/loop/turns.ts";
import { PASSED_ROWS_AT_ONCE } from "../../contracts/limits/jobs.ts";
import { first, type Statements } from "../../database/database.ts";

/** However many requests read failures, there is one statement of them in a turn of the event loop. */
export const FAILURE_TURNS = new OneEachTurn();

/**
 * Counts the finally failed batches whose worker died in them: `failedByOom` for lack of memory, `failedByDeath` the
 * others.
 */
export async function countDeadly(
  db: Statements,
  jobId: string,
): Promise<{ failedByDeath: number; failedByOom: number }> {
  const row = await first<{ deaths: number | null; ooms: number | null }>(
    db,
    `SELECT sum(by_death) AS deaths, sum(by_oom) AS ooms FROM batches
     WHERE job_id = ? AND failed = 1 AND by_death + by_oom > 0`,
    [jobId],
  );
  return { failedByDeath: Number(row?.deaths ?? 0), failedByOom: Number(row?.ooms ?? 0) };
}

/** The first batch that finally failed because its worker died. Those out of memory come first. */
export function firstDeadly(
  db: Statements,
  jobId: string,
): Promise<{ batch_index: number; error_json: string } | undefined> {
  return first(
    db,
    "SELECT batch_index, error_json FROM batches WHERE job_id = ? AND failed = 1 AND by_death + by_oom > 0 ORDER BY by_oom DESC, batch_index LIMIT 1",
    [jobId],
  );
}

export interface FailedBatchRow {
  batch_index: number;
  /** In which it failed. */
  round: number;
  attempts: number;
  error_json: string;
  letter_error: string | null;
}

/**
 * The next failed batches after `after`, in order: at most `limit`, and none only if none is left. A job may have any
 * number of batches between them that failed before and will be tried again. `group`: only those in this error group.
 */
export async function failedBatches(
  db: Statements,
  jobId: string,
  after: number,
  limit: number,
  group?: string,
): Promise<FailedBatchRow[]> {
  if (group !== undefined) return rowsOfGroup(db, jobId, { after, limit, group });
  for (let [last, count] = [after, limit]; ; count = PASSED_ROWS_AT_ONCE) {
    const rows = await rowsAfter(db, jobId, last, count);
    const failed = rows.filter((row) => row.failed === 1);
    if (failed.length > 0 || rows.length < count) return failed.slice(0, limit);
    last = rows.at(-1)!.batch_index;
  }
}

async function rowsOfGroup(
  db: Statements,
  jobId: string,
  { after, limit, group }: { after: number; limit: number; group: string },
): Promise<FailedBatchRow[]> {
  await FAILURE_TURNS.turn();
  return db.all(
    `SELECT batch_index, round, attempts, error_json, letter_error FROM batches
     WHERE job_id = ? AND failed = 1 AND error_group = ? AND batch_index > ? ORDER BY batch_index LIMIT ?`,
    [jobId, group, after, limit],
  );
}

/** The error group of a batch, whose errors differ in numbers only; undefined if the batch has not finally failed. */
export async function errorGroupOf(
  db: Statements,
  jobId: string,
  batchIndex: number,
): Promise<string | undefined> {
  const row = await first<{ error_group: string }>(
    db,
    "SELECT error_group FROM batches WHERE job_id = ? AND batch_index = ? AND failed = 1",
    [jobId, batchIndex],
  );
  return row?.error_group;
}

/** Which of these batches have finally failed; few of them. */
export async function failedAmong(
  db: Statements,
  jobId: string,
  batches: readonly number[],
): Promise<Set<number>> {
  const places = batches.map(() => "?").join(", ");
  await FAILURE_TURNS.turn();
  const rows = await db.all<{ batch_index: number }>(
    `SELECT batch_index FROM batches WHERE job_id = ? AND failed = 1 AND batch_index IN (${places})`,
    [jobId, ...batches],
  );
  return new Set(rows.map(({ batch_index }) => batch_index));
}

async function rowsAfter(
  db: Statements,
  jobId: string,
  after: number,
  limit: number,
): Promise<(FailedBatchRow & { failed: number })[]> {
  await FAILURE_TURNS.turn();
  return db.all(
    `SELECT batch_index, round, failed, attempts, CASE WHEN failed = 1 THEN error_json END AS error_json,
       CASE WHEN failed = 1 THEN letter_error END AS letter_error
     FROM batches WHERE job_id = ? AND batch_index > ? ORDER BY batch_index LIMIT ?`,
    [jobId, after, limit],
  );
}

/** The errors of a few batches of a group, as JSON: of its first one, which is `first`, of one in the middle, and of the last. */
export async function errorsOfGroup(
  db: Statements,
  jobId: string,
  group: string,
  first: number,
): Promise<FailedBatchRow[]> {
  const [head] = await rowsOfGroup(db, jobId, { after: first - 1, limit: 1, group });
  // A redrive may have removed it.
  if (head?.batch_index !== first) return [];
  await FAILURE_TURNS.turn();
  const [last] = await db.all<FailedBatchRow>(
    `SELECT batch_index, round, attempts, error_json, letter_error FROM batches
     WHERE job_id = ? AND failed = 1 AND error_group = ? AND batch_index > ? ORDER BY batch_index DESC LIMIT 1`,
    [jobId, group, first],
  );
  if (last === undefined) return [head];
  const after = Math.floor((first + last.batch_index) / 2);
  const [middle] = await rowsOfGroup(db, jobId, { after, limit: 1, group });
  return middle === undefined || middle.batch_index === last.batch_index
    ? [head, last]
    : [head, middle, last];
}

export interface FailureGroup {
  error_group: string;
  batches: number;
  first_batch_index: number;
}

/** Rows of an index that are read in one statement, which takes 1 to 2 ms. */
const COUNTED_AT_ONCE = 2_000;
/** Rows of an index that are passed over in one statement, which takes as long. */
const PASSED_AT_ONCE = 10_000;

interface GroupedBatch {
  error_group: string;
  batch_index: number;
}

/** Failed batches counted by their errors, the most frequent first. In pieces: a job may have millions of them. */
export async function failureGroups(db: Statements, jobId: string, limit: number): Promise<FailureGroup[]> {
  let groups: FailureGroup[] = [];
  const keep = () => {
    groups.sort((a, b) => b.batches - a.batches || a.first_batch_index - b.first_batch_index);
    groups = groups.slice(0, limit);
  };
  let last: GroupedBatch | undefined;
  for (;;) {
    const rows = await rowsByGroup(db, jobId, last);
    for (const { error_group, batch_index } of rows) {
      if (last?.error_group === error_group) groups.at(-1)!.batches++;
      else {
        // Trim only here: the last group is complete.
        if (groups.length >= 4 * limit) keep();
        groups.push({ error_group, batches: 1, first_batch_index: batch_index });
      }
      last = { error_group, batch_index };
    }
    if (rows.length < COUNTED_AT_ONCE) break;
    if (rows[0]!.error_group === last!.error_group) last = await passGroup(db, jobId, groups.at(-1)!, last!);
  }
  keep();
  return groups;
}

/** Counts the rest of a large group after `last`, without reading its rows. Returns the end of the group. */
async function passGroup(
  db: Statements,
  jobId: string,
  group: FailureGroup,
  { error_group, batch_index }: GroupedBatch,
): Promise<GroupedBatch> {
  const ofGroup = "FROM batches WHERE job_id = ? AND failed = 1 AND error_group = ? AND batch_index > ?";
  for (let passed = batch_index; ; group.batches += PASSED_AT_ONCE) {
    await FAILURE_TURNS.turn();
    const next = await first<{ batch_index: number }>(
      db,
      `SELECT batch_index ${ofGroup} ORDER BY batch_index LIMIT 1 OFFSET ?`,
      [jobId, error_group, passed, PASSED_AT_ONCE - 1],
    );
    if (next !== undefined) {
      passed = next.batch_index;
      continue;
    }
    await FAILURE_TURNS.turn();
    const rest = await first<{ batches: number }>(
      db,
      `SELECT CAST(count(*) AS INTEGER) AS batches ${ofGroup}`,
      [jobId, error_group, passed],
    );
    group.batches += rest!.batches;
    return { error_group, batch_index: Number.MAX_SAFE_INTEGER };
  }
}

/**
 * Failed batches by error group, after `last`. An index covers all columns and finds the place to begin. A failed batch
 * always has a group.
 */
async function rowsByGroup(
  db: Statements,
  jobId: string,
  last: GroupedBatch | undefined,
): Promise<GroupedBatch[]> {
  const after = last === undefined ? "" : "AND (error_group, batch_index) > (?, ?)";
  await FAILURE_TURNS.turn();
  return db.all(
    `SELECT error_group, batch_index FROM batches
     WHERE job_id = ? AND failed = 1 ${after} ORDER BY error_group, batch_index LIMIT ?`,
    [jobId, ...(last === undefined ? [] : [last.error_group, last.batch_index]), COUNTED_AT_ONCE],
  );
}
