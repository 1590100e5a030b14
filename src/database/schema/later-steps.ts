/** The steps after those in schema-steps.ts, under the same rules. */
import type { SchemaStep } from "./schema-step.ts";
import { SERIES_STEP } from "./series-step.ts";

export const LATER_STEPS: readonly SchemaStep[] = [
  [
    // Rows of `batches` have up to 97 KiB, and SQLite reads whole rows to find the end of a job. So everything that is
    // sought among them has an index that holds all columns of the statement. The statement repeats its condition.
    // Making these takes 0.2 s per 100,000 rows: a number that is 0 or 1 is in the head of its row. A batch that
    // succeeds, or fails for good without a death, is in none of them.
    `CREATE INDEX batches_deadly ON batches (job_id, by_oom DESC, batch_index, by_death)
     WHERE failed = 1 AND by_death + by_oom > 0`,
    "CREATE INDEX batches_charged ON batches (job_id, batch_index, attempts) WHERE failed = 0 AND attempts > 0",
    "CREATE INDEX batches_interrupted ON batches (job_id, interruptions) WHERE failed = 0 AND interruptions > 0",
    "DROP INDEX batches_in_hand",
    "CREATE INDEX batches_in_hand ON batches (job_id, in_hand, failed) WHERE in_hand > 0",
  ],
  [
    // Jobs that keep what predict() returned, and where. `manifest_etag`: the version of the last manifest, and
    // `manifest_round`: the round of the job that wrote it.
    `CREATE TABLE job_outputs (job_id TEXT PRIMARY KEY, prefix TEXT NOT NULL, compression TEXT NOT NULL,
     manifest_etag TEXT, manifest_round INTEGER) STRICT`,
    // The parts that are in the store: first_batch to the batch before next_batch.
    `CREATE TABLE output_parts (job_id TEXT NOT NULL, number INTEGER NOT NULL, first_batch INTEGER NOT NULL,
     next_batch INTEGER NOT NULL, batches INTEGER NOT NULL, name TEXT NOT NULL, rows INTEGER NOT NULL,
     bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (job_id, number)) STRICT, WITHOUT ROWID`,
  ],
  [
    // 1: batches that fail are split until their guilty items stand alone (docs/decisions/0027-isolation.md).
    "ALTER TABLE jobs ADD COLUMN isolates INTEGER NOT NULL DEFAULT 0",
    // The items of such batches, each item in one part. `file` to `row_count`: where the rows of a good part are.
    `CREATE TABLE batch_parts (job_id TEXT NOT NULL, batch_index INTEGER NOT NULL, first_item INTEGER NOT NULL,
     next_item INTEGER NOT NULL, state INTEGER NOT NULL, attempts INTEGER NOT NULL, file INTEGER NOT NULL,
     position INTEGER NOT NULL, bytes INTEGER NOT NULL, row_count INTEGER NOT NULL,
     PRIMARY KEY (job_id, batch_index, first_item)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX batch_parts_open ON batch_parts (job_id, batch_index) WHERE state = 0",
    "CREATE INDEX batch_parts_with_rows ON batch_parts (job_id, file, batch_index) WHERE file > 0",
    // The failures of the guilty ones. The error comes last: it may have 97 KiB.
    `CREATE TABLE failed_items (job_id TEXT NOT NULL, batch_index INTEGER NOT NULL, first_item INTEGER NOT NULL,
     next_item INTEGER NOT NULL, round INTEGER NOT NULL, attempts INTEGER NOT NULL, by_death INTEGER NOT NULL,
     by_oom INTEGER NOT NULL, source_path TEXT, source_line INTEGER, letter_error TEXT, error_group TEXT NOT NULL, error_json TEXT NOT NULL,
     PRIMARY KEY (job_id, batch_index, first_item)) STRICT, WITHOUT ROWID`,
    // The first of the items in the message, if it is not about a whole batch.
    "ALTER TABLE letters ADD COLUMN first_item INTEGER",
  ],
  [
    // The bytes of a part before compression; null if it is not compressed.
    "ALTER TABLE output_parts ADD COLUMN unpacked_bytes INTEGER",
  ],
  [
    // How often in a row a controller died while it enqueued the job, and got no further.
    "ALTER TABLE jobs ADD COLUMN enqueuing_deaths INTEGER NOT NULL DEFAULT 0",
  ],
  [
    "ALTER TABLE keys ADD COLUMN name TEXT",
    // To the minute.
    "ALTER TABLE keys ADD COLUMN last_used_time TEXT",
  ],
  [
    // What was counted of jobs whose records are gone, for the metrics.
    `CREATE TABLE forgotten_jobs (api_name TEXT NOT NULL, status TEXT NOT NULL, jobs INTEGER NOT NULL,
     succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (api_name, status)) STRICT, WITHOUT ROWID`,
    // `quern delete API --records`: records of jobs up to this time are removed.
    "CREATE TABLE forget_requests (api_name TEXT PRIMARY KEY, created_before TEXT NOT NULL) STRICT, WITHOUT ROWID",
  ],
  [
    // Since when the job waits for its first worker; null once one was ready.
    "ALTER TABLE jobs ADD COLUMN queued_time TEXT",
    "ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0",
    // Since when no batch of the API's jobs begins; null if they do.
    "ALTER TABLE apis ADD COLUMN paused_time TEXT",
  ],
  [
    // How long jobs took: their ends by API, status and the bound that they exceeded (batch/end/job-durations.ts).
    `CREATE TABLE job_durations (api_name TEXT NOT NULL, status TEXT NOT NULL, over_s INTEGER NOT NULL,
     jobs INTEGER NOT NULL, total_ms INTEGER NOT NULL, PRIMARY KEY (api_name, status, over_s)) STRICT, WITHOUT ROWID`,
    // The ended jobs, also those whose records are gone, so that nobody reads all jobs to count them.
    "ALTER TABLE forgotten_jobs RENAME TO job_totals",
    `INSERT INTO job_totals (api_name, status, jobs, succeeded, failed)
     SELECT api_name, status, count(*), sum(succeeded), sum(failed_attempts) FROM jobs WHERE end_time IS NOT NULL
     GROUP BY api_name, status
     ON CONFLICT (api_name, status) DO UPDATE SET jobs = job_totals.jobs + excluded.jobs,
       succeeded = job_totals.succeeded + excluded.succeeded, failed = job_totals.failed + excluded.failed`,
  ],
  // Paused jobs count towards the limit of unfinished ones.
  ["CREATE INDEX jobs_paused_by_api ON jobs (api_name) WHERE paused IS NOT NULL AND end_time IS NULL"],
  [
    // Sessions of browsers. `key_sha256`: the hash of the key that a session ends with.
    `CREATE TABLE sessions (sha256 TEXT PRIMARY KEY, key_id TEXT NOT NULL, key_sha256 TEXT NOT NULL,
     created_time TEXT NOT NULL, expires_time TEXT NOT NULL) STRICT, WITHOUT ROWID`,
  ],
  SERIES_STEP,
  [
    // Lists of the jobs of all APIs, by status, and a search in the names of their APIs: rows need not be read.
    "CREATE INDEX jobs_of_all_by_status ON jobs (status, job_id, api_name)",
    // The jobs that ended otherwise than hoped, by their end. Statements repeat the condition.
    `CREATE INDEX jobs_ended_badly ON jobs (end_time, job_id)
     WHERE end_time IS NOT NULL AND status NOT IN ('status_succeeded', 'status_stopped')`,
  ],
  [
    // Series of requests that the gateway itself refused, by error code (series-step.ts says what a row is).
    `CREATE TABLE series_rejections (api_name TEXT NOT NULL, code TEXT NOT NULL, at_s INTEGER NOT NULL,
     step_s INTEGER NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (api_name, code, at_s, step_s)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX series_rejections_by_age ON series_rejections (step_s, at_s)",
    // What happened to an API: its versions, and replicas that ended (series/change-rows.ts).
    `CREATE TABLE api_changes (api_name TEXT NOT NULL, at_s INTEGER NOT NULL, kind TEXT NOT NULL,
     times INTEGER NOT NULL, detail TEXT NOT NULL, former TEXT,
     PRIMARY KEY (api_name, at_s, kind)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX api_changes_by_age ON api_changes (at_s)",
  ],
  [
    // Which state in an object store the database has, if it has one (src/state/owner.ts). The address is for messages.
    "ALTER TABLE owner ADD COLUMN state_token TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE owner ADD COLUMN state_next TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE owner ADD COLUMN state_address TEXT NOT NULL DEFAULT ''",
    // The objects with the copied lines of a job: the bytes from `start` to before the next one, or to the object's end.
    `CREATE TABLE item_pieces (job_id TEXT NOT NULL, start INTEGER NOT NULL, bytes INTEGER NOT NULL, name TEXT NOT NULL,
     PRIMARY KEY (job_id, start)) STRICT, WITHOUT ROWID`,
    // Prefixes of the state whose objects nothing else names. `epoch`: of the controller that may still name them.
    "CREATE TABLE state_garbage (prefix TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  ],
  [
    // The workers of a job over time (batch/spans/span-rows.ts).
    `CREATE TABLE worker_spans (job_id TEXT NOT NULL, number INTEGER NOT NULL, worker_id TEXT NOT NULL,
     started_time TEXT NOT NULL, ready_time TEXT, ended_time TEXT, how TEXT, reason TEXT, batches INTEGER NOT NULL,
     spans INTEGER NOT NULL, PRIMARY KEY (job_id, number)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX worker_spans_open ON worker_spans (job_id) WHERE ended_time IS NULL",
  ],
  [
    // Who deployed a version or went back to it: the id of a key or the subject of a token, and the key's name then.
    "ALTER TABLE api_changes ADD COLUMN by_id TEXT",
    "ALTER TABLE api_changes ADD COLUMN by_name TEXT",
    // The rounds of jobs: how each began, and how all but the last ended (batch/rounds/round-rows.ts).
    `CREATE TABLE job_rounds (job_id TEXT NOT NULL, round INTEGER NOT NULL, how TEXT, by_id TEXT, by_name TEXT,
     selection TEXT, begun_time TEXT NOT NULL, succeeded_before INTEGER, failed_before INTEGER, ended_time TEXT,
     status TEXT, reason TEXT, succeeded_after INTEGER, failed_after INTEGER, PRIMARY KEY (job_id, round)) STRICT, WITHOUT ROWID`,
  ],
];
