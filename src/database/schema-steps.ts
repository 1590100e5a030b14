/**
 * The schema, as numbered steps that run once each. A released step never changes; a change of the schema is another
 * step. Names on the wire and in rows are the same words. JSON columns end in `_json` and contain texts as they came.
 */
import { LATER_STEPS } from "./schema/later-steps.ts";
import type { SchemaStep } from "./schema/schema-step.ts";

export const SCHEMA_STEPS: readonly SchemaStep[] = [
  [
    `CREATE TABLE apis (
      name TEXT PRIMARY KEY,
      kind TEXT NOT NULL,
      api_id TEXT NOT NULL,
      deployed_time TEXT NOT NULL
    ) STRICT`,
    // A version stays while a job refers to it; this table is also the history.
    `CREATE TABLE api_versions (
      name TEXT NOT NULL,
      api_id TEXT NOT NULL,
      predictor_id TEXT NOT NULL,
      spec_json TEXT NOT NULL,
      project_id TEXT NOT NULL,
      deployed_time TEXT NOT NULL,
      PRIMARY KEY (name, api_id)
    ) STRICT`,
    // The workers of real-time APIs and jobs, so that the next controller can adopt or end them.
    `CREATE TABLE workers (
      worker_id TEXT PRIMARY KEY,
      api_name TEXT NOT NULL,
      api_id TEXT NOT NULL,
      predictor_id TEXT NOT NULL,
      job_id TEXT,
      pid INTEGER NOT NULL,
      process_start TEXT NOT NULL,
      socket TEXT NOT NULL,
      token TEXT NOT NULL,
      note TEXT NOT NULL
    ) STRICT`,
    `CREATE TABLE jobs (
      job_id TEXT PRIMARY KEY,
      api_name TEXT NOT NULL,
      api_id TEXT NOT NULL,
      submission_json TEXT NOT NULL,
      config_json TEXT NOT NULL,
      workers INTEGER NOT NULL,
      timeout_s INTEGER,
      status TEXT NOT NULL,
      closing TEXT,
      reason_json TEXT,
      round INTEGER NOT NULL DEFAULT 1,
      epoch INTEGER NOT NULL DEFAULT 0,
      total_batch_count INTEGER,
      enqueued_batches INTEGER NOT NULL DEFAULT 0,
      enqueue_cursor_json TEXT,
      succeeded INTEGER NOT NULL DEFAULT 0,
      failed_attempts INTEGER NOT NULL DEFAULT 0,
      failed_batches INTEGER NOT NULL DEFAULT 0,
      success_us INTEGER NOT NULL DEFAULT 0,
      created_time TEXT NOT NULL,
      start_time TEXT,
      end_time TEXT
    ) STRICT`,
    "CREATE INDEX jobs_by_api ON jobs (api_name, job_id DESC)",
    "CREATE INDEX jobs_in_progress ON jobs (status) WHERE end_time IS NULL",
    // Index rows only: the batches themselves are in the input files or in the job's own file.
    `CREATE TABLE segments (
      job_id TEXT NOT NULL,
      first_batch INTEGER NOT NULL,
      batch_count INTEGER NOT NULL,
      item_count INTEGER NOT NULL,
      ranges_json TEXT NOT NULL,
      has_blank_lines INTEGER NOT NULL,
      settled BLOB,
      settled_count INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (job_id, first_batch)
    ) STRICT, WITHOUT ROWID`,
    // Only batches that failed or lost a worker have a row.
    `CREATE TABLE batches (
      job_id TEXT NOT NULL,
      batch_index INTEGER NOT NULL,
      round INTEGER NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0,
      interruptions INTEGER NOT NULL DEFAULT 0,
      failed INTEGER NOT NULL DEFAULT 0,
      by_death INTEGER NOT NULL DEFAULT 0,
      error_json TEXT,
      PRIMARY KEY (job_id, batch_index)
    ) STRICT, WITHOUT ROWID`,
    "CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL)",
    "INSERT INTO owner VALUES (1, 0)",
  ],
  [
    `CREATE TABLE idempotency_keys (
      api_name TEXT NOT NULL,
      idempotency_key TEXT NOT NULL,
      body_sha256 TEXT NOT NULL,
      job_id TEXT NOT NULL,
      created_ms INTEGER NOT NULL,
      PRIMARY KEY (api_name, idempotency_key)
    ) STRICT, WITHOUT ROWID`,
    "CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_ms)",
    // Only the hashes of keys are stored.
    `CREATE TABLE keys (
      id TEXT PRIMARY KEY,
      sha256 TEXT NOT NULL UNIQUE,
      scope TEXT NOT NULL,
      api TEXT,
      created_time TEXT NOT NULL
    ) STRICT, WITHOUT ROWID`,
  ],
  [
    "ALTER TABLE jobs ADD COLUMN max_receive_count INTEGER NOT NULL DEFAULT 1",
    // The ARN as it was sent, and the queue that it names (contracts/queues.ts).
    "ALTER TABLE jobs ADD COLUMN dead_letter_arn TEXT",
    "ALTER TABLE jobs ADD COLUMN dead_letter_queue TEXT",
    // When a round after the first began; `timeout` counts from it.
    "ALTER TABLE jobs ADD COLUMN round_started_time TEXT",
    "ALTER TABLE workers ADD COLUMN gpus TEXT NOT NULL DEFAULT ''",
    // When the job's data was removed after the retention; the record stays.
    "ALTER TABLE jobs ADD COLUMN pruned_time TEXT",
    "ALTER TABLE batches ADD COLUMN by_oom INTEGER NOT NULL DEFAULT 0",
    // Failures are counted by this: the error without its numbers.
    "ALTER TABLE batches ADD COLUMN error_group TEXT",
    // Why the message can never be sent.
    "ALTER TABLE batches ADD COLUMN letter_error TEXT",
    // The messages in Quern's own queues, and those that wait for SQS.
    `CREATE TABLE letters (
      message_id TEXT PRIMARY KEY,
      queue TEXT NOT NULL,
      job_id TEXT NOT NULL,
      batch_index INTEGER NOT NULL,
      round INTEGER NOT NULL,
      body BLOB NOT NULL,
      attributes_json TEXT NOT NULL,
      sent_time TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX letters_by_queue ON letters (queue, message_id)",
    "CREATE INDEX jobs_by_dead_letter_queue ON jobs (dead_letter_queue) WHERE dead_letter_queue IS NOT NULL",
  ],
  [
    // The responses of real-time APIs, by the hour (apis/records/api-metrics.ts).
    `CREATE TABLE api_metrics (
      api_name TEXT NOT NULL,
      hour TEXT NOT NULL,
      kind TEXT NOT NULL,
      label TEXT NOT NULL,
      count INTEGER NOT NULL,
      sum REAL NOT NULL,
      least REAL,
      most REAL,
      PRIMARY KEY (api_name, hour, kind, label)
    ) STRICT, WITHOUT ROWID`,
    // The totals of each gateway that have already been added to these.
    `CREATE TABLE gateway_totals (
      gateway TEXT PRIMARY KEY,
      totals_json TEXT NOT NULL,
      reported_time TEXT NOT NULL
    ) STRICT, WITHOUT ROWID`,
    "ALTER TABLE keys ADD COLUMN rate_requests INTEGER",
    "ALTER TABLE keys ADD COLUMN rate_seconds INTEGER",
    "ALTER TABLE keys ADD COLUMN expires_time TEXT",
    // A revoked key stays, because a server that never had a key is open to all.
    "ALTER TABLE keys ADD COLUMN revoked_time TEXT",
  ],
  [
    // Declarative applications: what was deployed last. Computed results are in files, by content.
    `CREATE TABLE applications (
      name TEXT PRIMARY KEY,
      project_id TEXT NOT NULL,
      config_file TEXT NOT NULL,
      config_text TEXT NOT NULL,
      environment TEXT NOT NULL,
      data_version TEXT NOT NULL,
      deployed_time TEXT NOT NULL
    ) STRICT, WITHOUT ROWID`,
  ],
  [
    // Batches that are recorded before they go out: 1, and 2 for one that runs alone (interrupted-batches.ts).
    "ALTER TABLE batches ADD COLUMN in_hand INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX batches_in_hand ON batches (job_id) WHERE in_hand > 0",
    // The boot of the machine in which the owner started.
    "ALTER TABLE owner ADD COLUMN boot TEXT",
  ],
  [
    // Projects whose files this database has stored, and may remove (apis/projects/project-sweep.ts).
    "CREATE TABLE projects (project_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    // A name with a point belongs to an application, which manages the projects that it makes.
    `INSERT INTO projects SELECT project_id FROM api_versions WHERE project_id <> '' AND name NOT LIKE '%.%'
     UNION SELECT project_id FROM applications`,
  ],
  [
    // The data directory that the database belongs to (instance.ts).
    "ALTER TABLE owner ADD COLUMN instance_id TEXT NOT NULL DEFAULT ''",
    // The data directory that the worker belongs to. A copy of the directory has the rows too.
    "ALTER TABLE workers ADD COLUMN instance_id TEXT NOT NULL DEFAULT ''",
    // Why no new batch begins, and since when; null means not paused.
    "ALTER TABLE jobs ADD COLUMN paused TEXT",
    "ALTER TABLE jobs ADD COLUMN paused_time TEXT",
    "CREATE INDEX jobs_paused ON jobs (job_id) WHERE paused IS NOT NULL",
  ],
  [
    // Failed batches are counted by their errors without their rows, which have up to 97 KiB each. The index has plain
    // columns: SQLite does not seek in an index by an expression, and would read from the job's start for each page.
    "UPDATE batches SET error_group = '' WHERE failed = 1 AND error_group IS NULL",
    "CREATE INDEX batches_by_error ON batches (job_id, error_group, batch_index) WHERE failed = 1",
  ],
  ["ALTER TABLE jobs ADD COLUMN has_older_names INTEGER NOT NULL DEFAULT 0"],
  [
    // The capability with which a worker calls other APIs: the SHA-256, and the port of the listener for these calls.
    "ALTER TABLE workers ADD COLUMN capability TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE workers ADD COLUMN api_port INTEGER NOT NULL DEFAULT 0",
  ],
  [
    // These texts may have megabytes. In the rows of jobs, SQLite read them to reach the columns after them
    // (docs/decisions/0003-sqlite.md). Retention removes submissions; a job without `config` has no row of it.
    "CREATE TABLE job_submissions (job_id TEXT PRIMARY KEY, submission_json TEXT NOT NULL) STRICT",
    "CREATE TABLE job_configs (job_id TEXT PRIMARY KEY, config_json TEXT NOT NULL) STRICT",
  ],
  {
    // One row at a time: the next one uses the pages that this one frees, so the file hardly grows.
    next: "SELECT job_id AS id FROM jobs WHERE job_id > ? AND submission_json <> '' ORDER BY job_id LIMIT 1",
    move: [
      "INSERT INTO job_submissions SELECT job_id, submission_json FROM jobs WHERE job_id = ? AND pruned_time IS NULL",
      "INSERT INTO job_configs SELECT job_id, config_json FROM jobs WHERE job_id = ? AND config_json <> '{}'",
      "UPDATE jobs SET submission_json = '', config_json = '' WHERE job_id = ?",
    ],
  },
  [
    "ALTER TABLE jobs DROP COLUMN submission_json",
    "ALTER TABLE jobs DROP COLUMN config_json",
    // Each row still has the page that it shared with its submission: written anew, twenty rows share one.
    "CREATE TABLE jobs_copied AS SELECT * FROM jobs ORDER BY job_id",
    "DELETE FROM jobs",
    "INSERT INTO jobs SELECT * FROM jobs_copied ORDER BY job_id",
    "DROP TABLE jobs_copied",
    "CREATE INDEX jobs_by_status ON jobs (api_name, status, job_id DESC)",
    "DROP INDEX jobs_in_progress",
    "CREATE INDEX jobs_in_progress ON jobs (api_name, job_id) WHERE end_time IS NULL",
  ],
  ...LATER_STEPS,
];
