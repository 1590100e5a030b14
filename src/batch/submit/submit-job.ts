/**
 * Records a job durably. Its response may be sent when `submitJob` resolves; enqueuing follows
 * (docs/contract/submitting.md#durable-before-the-answer).
 */

import { timestamp, wallMs } from "../../base/clock.ts";
import { SUBMISSIONS } from "../../base/files/leave-free.ts";
import { newUlid } from "../../base/ids.ts";
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { type DoneBy, NOBODY } from "../../contracts/keys.ts";
import { ITEMS_STORED_BYTES_MAX } from "../../contracts/limits/submissions.ts";
import { type Database, type Statements, unavailabilityOf } from "../../database/database.ts";
import { insertOutput } from "../output/job-outputs.ts";
import type { ItemsStore } from "../records/items-file.ts";
import { insertJob, type NewJob } from "../records/job-rows.ts";
import type { StoredInput } from "../records/stored-input.ts";
import { noteSubmitter } from "../rounds/round-rows.ts";
import { type CheckDeps, checkedSubmission } from "./check-submission.ts";
import { findSubmission, type SubmissionKey, saveSubmission, submissionKey } from "./idempotency.ts";
import type { OlderName } from "./older-names.ts";
import { type OutputRequest, outputOfJob } from "./output-request.ts";
import type { ParsedSubmission } from "./parse-submission.ts";
import type { SentSubmission } from "./read-submission.ts";

export interface SubmitDeps extends CheckDeps {
  db: Database;
  items: ItemsStore;
  /** Throws `api_not_found`. The API may be deleted while a submission is checked, which takes as long as its stores. */
  assertDeployed: (tx: Statements, apiName: string) => Promise<string | null>;
  reach: ReachKillPoint;
}

/** The API version of a submission. */
export interface SubmittedTo {
  name: string;
  api_id: string;
  /** The output of jobs whose submission has none. */
  output?: OutputRequest | undefined;
}

export interface Submitted {
  job_id: string;
  /** The job was created before with this `Idempotency-Key`. */
  isReplay: boolean;
  /** Names of Cortex that the submission used; empty for a replay. */
  olderNames: readonly OlderName[];
}

/**
 * Throws ServiceError if the submission is not valid, or if its key was used for another one. If its client is gone
 * before it is checked, it creates no job.
 */
export async function submitJob(
  deps: SubmitDeps,
  api: SubmittedTo,
  sent: SentSubmission,
): Promise<Submitted> {
  const { body, idempotencyKey } = sent;
  const bytes = body.length;
  const key = idempotencyKey === undefined ? undefined : await submissionKey(api.name, idempotencyKey, body);
  const before = key && (await findSubmission(deps.db, key, wallMs()));
  if (before !== undefined) return { job_id: before, isReplay: true, olderNames: [] };
  const submission = await checkedSubmission(deps, sent, api.output);
  await deps.items.admit(bytes, SUBMISSIONS);
  const { input } = submission;
  // The id has the same millisecond, so that lists find jobs by their time without reading them.
  const created = timestamp();
  const jobId = newUlid(Date.parse(created));
  const hasFile = input.kind === "items" && !isShort(input.lines);
  const forget = async () => {
    if (hasFile) await deps.items.forget(jobId);
  };
  const make = async () => {
    if (hasFile) await deps.items.write(jobId, input.lines);
    deps.reach("submission-before-commit");
    const output = submission.output && outputOfJob(submission.output, jobId);
    const job = { ...toNewJob({ jobId, created }, api, submission), hasFile, by: sent.by ?? NOBODY };
    return record(deps, job, output, key);
  };
  const recorded = await make().catch(async (error) => {
    // The job may be recorded, and needs its items then. If it is not, the next start removes them.
    if (unavailabilityOf(error)?.isOutcomeUnknown !== true) await forget();
    throw error;
  });
  // Another submission with the same key was faster.
  if (recorded !== jobId) await forget();
  deps.reach("submission-after-commit");
  const isReplay = recorded !== jobId;
  return { job_id: recorded, isReplay, olderNames: isReplay ? [] : submission.olderNames };
}

/** Resolves to the id of the job that the key now names. */
function record(
  { db, items, assertDeployed }: SubmitDeps,
  { hasFile, by, ...job }: NewJob & { hasFile: boolean; by: DoneBy },
  output: ReturnType<typeof outputOfJob> | undefined,
  key: SubmissionKey | undefined,
): Promise<string> {
  return db.transaction(async (tx) => {
    const before = key && (await findSubmission(tx, key, wallMs()));
    if (before !== undefined) return before;
    const paused_time = await assertDeployed(tx, job.api_name);
    await insertJob(tx, { ...job, paused_time });
    await noteSubmitter(tx, job.job_id, by, job.created_time);
    if (hasFile) await items.named(tx, job.job_id);
    if (output !== undefined) await insertOutput(tx, output);
    if (key !== undefined) await saveSubmission(tx, key, job.job_id, wallMs());
    return job.job_id;
  });
}

function toNewJob(
  { jobId, created }: { jobId: string; created: string },
  api: SubmittedTo,
  submission: ParsedSubmission,
): NewJob {
  return {
    job_id: jobId,
    api_name: api.name,
    api_id: api.api_id,
    submission_json: JSON.stringify(toStored(submission)),
    config_json: submission.configText,
    workers: submission.workers,
    timeout_s: submission.timeout ?? null,
    max_receive_count: submission.deadLetters?.max_receive_count ?? 1,
    dead_letter_arn: submission.deadLetters?.arn ?? null,
    dead_letter_queue: submission.deadLetters?.queue ?? null,
    created_time: created,
    isolates: submission.isolates ? 1 : 0,
    priority: submission.priority,
    has_older_names: submission.olderNames.length > 0 ? 1 : 0,
  };
}

function toStored({ input }: ParsedSubmission): StoredInput {
  if (input.kind !== "items") return input;
  const { batch_size, count, lines } = input;
  const stored = { kind: "items" as const, batch_size, batch_count: Math.ceil(count / batch_size) };
  return isShort(lines) ? { ...stored, lines: lines.toString() } : stored;
}

/** Short items are stored with the submission: a file of their own costs three syncs of the disk more. */
function isShort(lines: Buffer): boolean {
  return lines.length <= ITEMS_STORED_BYTES_MAX;
}
