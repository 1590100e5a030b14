/**
 * The tables of the series (src/series/). A row is one minute (`step_s` 60) or one hour (3600) that begins at `at_s`, in
 * Unix seconds. An hour has a row only after its minutes are gone, so the rows of a series never overlap. `api_name` is
 * '' for all APIs together. A minute in which nothing happened has no row.
 */
import type { SchemaStep } from "./schema-step.ts";

/** One for each bucket of a histogram (contracts/reports.ts). Zeros take one byte each in SQLite. */
const BUCKETS = 16;
const buckets = (letter: string) =>
  Array.from({ length: BUCKETS }, (_, at) => `${letter}${at} INTEGER NOT NULL`).join(", ");
const KEY = "at_s INTEGER NOT NULL, step_s INTEGER NOT NULL";
const LEVELS =
  "replicas INTEGER, in_flight INTEGER, queue_depth INTEGER, cpus REAL, in_flight_max INTEGER, queue_depth_max INTEGER, cpus_max REAL";

export const SERIES_STEP: SchemaStep = [
  // Requests, and histograms of their durations (d) and of the time that they waited for a replica (w).
  `CREATE TABLE series_requests (api_name TEXT NOT NULL, ${KEY}, requests INTEGER NOT NULL, errors INTEGER NOT NULL,
   ${buckets("d")}, ${buckets("w")}, PRIMARY KEY (api_name, at_s, step_s)) STRICT, WITHOUT ROWID`,
  "CREATE INDEX series_requests_by_age ON series_requests (step_s, at_s)",
  // Levels: the last ones of the step, which hold until the next row; and the highest. Null: nothing is known from here.
  `CREATE TABLE series_levels (api_name TEXT NOT NULL, ${KEY}, ${LEVELS},
   PRIMARY KEY (api_name, at_s, step_s)) STRICT, WITHOUT ROWID`,
  "CREATE INDEX series_levels_by_age ON series_levels (step_s, at_s)",
  // Succeeded batches and failed attempts, by job, by API (job_id '') and of all.
  `CREATE TABLE series_batches (api_name TEXT NOT NULL, job_id TEXT NOT NULL, ${KEY}, succeeded INTEGER NOT NULL,
   failed INTEGER NOT NULL, PRIMARY KEY (api_name, job_id, at_s, step_s)) STRICT, WITHOUT ROWID`,
  "CREATE INDEX series_batches_by_age ON series_batches (step_s, at_s)",
  // Of jobs that have not ended: how much of their counts is in series_batches. No row: nothing.
  `CREATE TABLE series_counted (job_id TEXT PRIMARY KEY, succeeded INTEGER NOT NULL,
   failed INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
  `INSERT INTO series_counted (job_id, succeeded, failed)
   SELECT job_id, succeeded, failed_attempts FROM jobs WHERE end_time IS NULL`,
];
