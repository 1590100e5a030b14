/** The closing records of many jobs at once: of those that have none and have not ended. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { closeStopped } from "../../../src/batch/records/job-moves.ts";
import { CLOSED_JOBS_AT_ONCE } from "../../../src/contracts/limits/jobs.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

it("jobs of a deleted API are stopped few in one statement; those that have another end keep it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-close-"));
  const db = openSqliteDatabase(join(directory, "quern.db"));
  await migrate(db);
  const ids = Array.from({ length: 2 * CLOSED_JOBS_AT_ONCE + 3 }, (_, i) => `job-${i}`);
  for (const [i, id] of ids.entries())
    await db.run(
      "INSERT INTO jobs (job_id, api_name, api_id, workers, status, closing, created_time) VALUES (?, 'a', '1', 1, ?, ?, '')",
      [
        id,
        i === 0 ? "status_succeeded" : i % 2 === 0 ? "status_running" : "status_enqueuing",
        i === 1 ? "status_timed_out" : null,
      ],
    );
  const changed: number[] = [];
  await closeStopped(
    { ...db, run: async (...statement) => changed.push(await db.run(...statement)) },
    ids.slice(0, -1),
  );
  expect(changed).toEqual([CLOSED_JOBS_AT_ONCE - 2, CLOSED_JOBS_AT_ONCE, 2]);
  const rows = await db.all<{ job_id: string; closing: string | null; reason_json: string | null }>(
    "SELECT job_id, closing, reason_json FROM jobs WHERE closing IS NULL OR closing <> 'status_stopped'",
  );
  expect(rows.map(({ job_id, closing }) => [job_id, closing])).toEqual([
    ["job-0", null],
    ["job-1", "status_timed_out"],
    [ids.at(-1), null],
  ]);
  await db.close();
  rmSync(directory, { recursive: true });
});
