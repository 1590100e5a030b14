/** Fills the database of a stopped server with the records of a large installation, copied from one real job. */
import type { Database } from "../../src/database/database.ts";

const COPIED_AT_ONCE = 1000;
const FAILURES_AT_ONCE = 20_000;
/** Different errors among the failures. */
const ERRORS = 20;
const STATUSES = ["status_succeeded", "status_completed_with_failures", "status_stopped", "status_timed_out"];

/** Copies a job that has ended `count` times, with other ids, times and statuses. */
export async function copyJobs(db: Database, jobId: string, count: number): Promise<void> {
  const [row] = await db.all<Record<string, string | number | null>>("SELECT * FROM jobs WHERE job_id = ?", [
    jobId,
  ]);
  const columns = Object.keys(row!);
  const places = `(${columns.map(() => "?").join(", ")})`;
  for (let at = 0; at < count; at += COPIED_AT_ONCE) {
    await db.transaction(async (tx) => {
      for (let n = at; n < Math.min(count, at + COPIED_AT_ONCE); n++) {
        const copy = {
          ...row,
          job_id: `01${String(n).padStart(24, "0")}`,
          status: STATUSES[n % STATUSES.length]!,
        };
        await tx.run(
          `INSERT INTO jobs (${columns.join(", ")}) VALUES ${places}`,
          columns.map((column) => (copy as typeof row)![column]!),
        );
      }
    });
  }
}

/** Makes a job fail in `count` batches more. */
export async function addFailures(db: Database, jobId: string, count: number): Promise<void> {
  const error = (n: number) =>
    JSON.stringify({
      type: "ValueError",
      message: `reason ${"x".repeat(1 + (n % ERRORS))} of item ${n}`,
      traceback: 'Traceback (most recent call last):\n  File "captions.py", line 9, in predict\n'.repeat(4),
    });
  for (let at = 0; at < count; at += FAILURES_AT_ONCE) {
    await db.transaction(async (tx) => {
      for (let n = at; n < at + FAILURES_AT_ONCE; n++)
        await tx.run(
          "INSERT INTO batches (job_id, batch_index, round, attempts, failed, by_death, by_oom, error_json, error_group) VALUES (?, ?, 1, 1, 1, 0, 0, ?, ?)",
          [jobId, 1_000_000 + n, error(n), `group ${n % ERRORS}`],
        );
    });
  }
  await db.run(
    "UPDATE jobs SET failed_batches = failed_batches + ?, total_batch_count = total_batch_count + ? WHERE job_id = ?",
    [count, count, jobId],
  );
}
