/** Gathers what an explanation of a job needs: its record, its run, its failures. It changes nothing. */
import { wallMs } from "../../base/clock.ts";
import type { JobApi } from "../../batch/job-deps.ts";
import type { JobLook, WorkerLook } from "../../batch/look-at-job.ts";
import { type JobRow, reasonOf } from "../../batch/records/job-rows.ts";
import type { MemoryFacts } from "../../explain/facts.ts";
import type { FailureFacts, JobFacts, JobWorkerFacts } from "../../explain/job/job-facts.ts";
import { shownRounds } from "../jobs/job-round-list.ts";
import { amountOf, serverFacts } from "./api-facts.ts";
import type { ExplainDeps } from "./explain-deps.ts";

const FAILURE_GROUPS = 10;
const SQS = /^arn:/;

/**
 * `mayNameOthers`: whether the caller may know which other APIs and jobs hold compute. `countsFailures`: by their
 * errors, which takes a tenth of a second for a million of them.
 */
export async function jobFacts(
  deps: ExplainDeps,
  row: JobRow,
  { mayNameOthers, countsFailures }: { mayNameOthers: boolean; countsFailures: boolean },
): Promise<JobFacts> {
  const { jobs } = deps;
  const isOver = row.end_time !== null;
  const look = isOver ? undefined : jobs.look(row.job_id);
  const api = isOver ? undefined : await jobs.apiOf(row);
  const account = deps.account();
  return {
    ...{ apiName: row.api_name, jobId: row.job_id, status: row.status, server: await serverFacts(deps) },
    compute: mayNameOthers ? account : { ...account, holders: undefined },
    ...recordFacts(row),
    ...lookFacts(look, deps.memoryOfWorkers()),
    isEnding: !isOver && row.closing !== null,
    waiting: isOver ? undefined : jobs.waiting(row.job_id, mayNameOthers),
    counts: jobs.workerCounts(row.job_id),
    need: api === undefined ? undefined : amountOf(api.compute),
    startupTimeoutS: startupS(api),
    timeout: timeoutOf(row, look),
    installingS: await installingS(deps, row, look),
    failures: countsFailures && row.failed_batches > 0 ? await failuresOf(deps, row) : [],
    redriven: isOver && row.round > 1 ? await lastRedrive(deps, row) : undefined,
    letters: await lettersOf(deps, row),
  };
}

function recordFacts(row: JobRow) {
  const { paused, paused_time, succeeded, success_us } = row;
  const by: NonNullable<JobFacts["paused"]>["by"] = paused === "api" || paused === "copy" ? paused : "user";
  return {
    paused: paused === null ? undefined : { by, since: paused_time ?? "" },
    enqueuedBatches: row.enqueued_batches,
    total: row.total_batch_count ?? undefined,
    ...{ succeeded, failedBatches: row.failed_batches, failedAttempts: row.failed_attempts },
    averageS: succeeded === 0 ? undefined : success_us / 1e6 / succeeded,
    workersAsked: row.workers,
    reason: reasonOf(row),
    ended: endOf(row),
  };
}

function endOf({ end_time, start_time, created_time, round_started_time }: JobRow): JobFacts["ended"] {
  if (end_time === null) return undefined;
  const began = round_started_time ?? start_time ?? created_time;
  return { tookS: Math.max(0, (Date.parse(end_time) - Date.parse(began)) / 1000) };
}

function lookFacts(look: JobLook | undefined, memory: ReadonlyMap<string, MemoryFacts>) {
  const input = look?.input;
  return {
    storeError: look?.storeError,
    phase: look?.name ?? ("none" as const),
    workers: (look?.workers ?? []).map((worker) => workerFacts(worker, memory)),
    input:
      input === undefined
        ? undefined
        : {
            ...{ bytes: input.bytes, readS: input.readMs / 1000, sinceS: input.sinceMs / 1000 },
            isExhausted: input.isExhausted,
          },
  };
}

function workerFacts(worker: WorkerLook, memory: ReadonlyMap<string, MemoryFacts>): JobWorkerFacts {
  const { id, state, ageMs, busy, idleShare } = worker;
  return {
    ...{ id, state, ageS: ageMs / 1000, memory: memory.get(id), idleShare },
    busy: busy === undefined ? undefined : { batch: busy.batch, forS: busy.forMs / 1000 },
  };
}

function startupS(api: JobApi | undefined): number {
  return api === undefined ? Number.POSITIVE_INFINITY : api.lifetime.startup.ms / 1000;
}

function timeoutOf({ timeout_s }: JobRow, look: JobLook | undefined): JobFacts["timeout"] {
  if (timeout_s === null || look === undefined) return undefined;
  return { allS: timeout_s, leftS: look.leftMs / 1000 };
}

/** Only while no worker has a process yet: the packages of another version may be meant. */
async function installingS({ apis }: ExplainDeps, row: JobRow, look: JobLook | undefined) {
  if (look === undefined || look.workers.length > 0) return undefined;
  const version = await apis.deployed.findVersion(row.api_name);
  if (version === undefined || version.api_id !== row.api_id) return undefined;
  const ms = apis.deployed.installingMsOf(version);
  return ms === undefined ? undefined : ms / 1000;
}

async function failuresOf({ jobs }: ExplainDeps, row: JobRow): Promise<FailureFacts[]> {
  const groups: FailureFacts[] = [];
  for await (const group of jobs.records.failureGroups(row)) {
    const { batches, first_batch_index: firstBatch, common_message: common, error } = group;
    groups.push({ batches, firstBatch, common, ...error });
    if (groups.length === FAILURE_GROUPS) break;
  }
  return groups;
}

async function lastRedrive({ jobs }: ExplainDeps, row: JobRow): Promise<JobFacts["redriven"]> {
  const rounds = [...shownRounds(row, await jobs.records.rounds(row.job_id))];
  const { round, how, batches, succeeded, failed } = rounds.at(-1)!;
  if (how !== "redriven" || batches === null || succeeded === null || failed === null) return undefined;
  return { round, batches, succeeded, failed };
}

async function lettersOf({ jobs }: ExplainDeps, row: JobRow): Promise<JobFacts["letters"]> {
  const queue = row.dead_letter_queue;
  if (queue === null || !SQS.test(queue)) return undefined;
  const { messages, oldest_sent_time } = await jobs.waitingLetters(queue);
  if (oldest_sent_time === null) return undefined;
  return { queue, messages, oldestS: Math.max(0, (wallMs() - Date.parse(oldest_sent_time)) / 1000) };
}
