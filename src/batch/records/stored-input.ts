/**
 * The input of a job as stored in the database: the submission, with the items if they are short. Longer ones are in
 * the job's own file. It is not in the job's row, and retention removes it.
 */
import { OneEachTurn } from "../../base/loop/turns.ts";
import { first, type Statements } from "../../database/database.ts";
import type { FileSelection } from "../../object-store/select/select-files.ts";

export type StoredInput =
  /** `lines`: the items, if they are not in the job's own file. */
  | { kind: "items"; batch_size: number; batch_count: number; lines?: string }
  | ({ kind: "lines" | "paths"; batch_size: number; batch_count?: undefined } & FileSelection);

/** A parse of 4 MB takes 20 ms. A start of the server reads the inputs of all jobs. */
const TURNS = new OneEachTurn();

/** Reads it when it is needed. Callers do not keep it: a selection of files may have 10 MB. */
export async function storedInput(db: Statements, jobId: string): Promise<StoredInput> {
  const input = await inputIfKept(db, jobId);
  if (input === undefined) throw new Error(`the input of job ${jobId} is gone`);
  return input;
}

/** Undefined after the retention. */
export async function inputIfKept(db: Statements, jobId: string): Promise<StoredInput | undefined> {
  await TURNS.turn();
  const sql = "SELECT submission_json FROM job_submissions WHERE job_id = ?";
  const row = await first<{ submission_json: string }>(db, sql, [jobId]);
  return row === undefined ? undefined : (JSON.parse(row.submission_json) as StoredInput);
}

export async function removeInput(tx: Statements, jobId: string): Promise<void> {
  await tx.run("DELETE FROM job_submissions WHERE job_id = ?", [jobId]);
}
