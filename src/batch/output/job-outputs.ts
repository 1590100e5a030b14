/** Where jobs keep what `predict()` returned: one row for each job with an output. */
import { first, type Statements } from "../../database/database.ts";

export type OutputCompression = "none" | "zstd";

export interface OutputRow {
  job_id: string;
  /** The address below which its objects are; it ends with a slash. */
  prefix: string;
  /** It never changes: each round writes its parts like the first. */
  compression: OutputCompression;
  /** The version of the last manifest; null before the first. */
  manifest_etag: string | null;
  /** The round of the job whose end wrote it; null before the first. */
  manifest_round: number | null;
}

/** A job's output before its first manifest. */
export type NewOutput = Omit<OutputRow, "manifest_etag" | "manifest_round">;

export async function insertOutput(
  tx: Statements,
  { job_id, prefix, compression }: NewOutput,
): Promise<void> {
  await tx.run("INSERT INTO job_outputs (job_id, prefix, compression) VALUES (?, ?, ?)", [
    job_id,
    prefix,
    compression,
  ]);
}

/** Undefined if the job has no output. */
export function findOutput(db: Statements, jobId: string): Promise<OutputRow | undefined> {
  return first<OutputRow>(
    db,
    "SELECT job_id, prefix, compression, manifest_etag, manifest_round FROM job_outputs WHERE job_id = ?",
    [jobId],
  );
}

/** The manifest that is in the store now, and the round that wrote it. */
export async function setManifest(
  db: Statements,
  jobId: string,
  { etag, round }: { etag: string; round: number },
): Promise<void> {
  const statement = "UPDATE job_outputs SET manifest_etag = ?, manifest_round = ? WHERE job_id = ?";
  await db.run(statement, [etag, round, jobId]);
}
