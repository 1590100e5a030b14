/** `GET /API/JOB/workers`: when each worker of a job started, was ready and ended, and what it has in hand. */
import type { Context } from "hono";
import type { Jobs } from "../../batch/jobs.ts";
import type { JobLook } from "../../batch/look-at-job.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import type { NumberedSpan, SpanRow } from "../../batch/spans/span-rows.ts";
import type { WorkerSpanShown } from "../../contracts/http/explain-operations.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";

export interface WorkersDeps {
  jobs: Jobs;
  lists: OpenStreams;
  reads: ReadsInTurn;
}

export async function workersResponse(
  c: Context,
  { jobs, lists, reads }: WorkersDeps,
  { job_id }: JobRow,
): Promise<Response> {
  return reads.take(c, (pass) => jsonChunks(c, lists, workersText(jobs, job_id), pass));
}

/** As JobWorkersShown, a worker at a time: a job may have had a thousand, each with a long reason to hide secrets in. */
async function* workersText(jobs: Jobs, jobId: string): AsyncGenerator<string> {
  // Before the rows: what is saved meanwhile is in both.
  const look = jobs.look(jobId);
  const rows = await jobs.records.spans(jobId);
  let separator = "";
  yield '{"workers":[';
  for (const span of overlaid(rows, look?.spans ?? [])) {
    yield separator + JSON.stringify(shown(span, look));
    separator = ",";
  }
  yield "]}";
}

/** The rows, with what is newer in memory. */
function overlaid(rows: readonly NumberedSpan[], unsaved: JobLook["spans"]): SpanRow[] {
  const isOf = (row: SpanRow) => (span: SpanRow) =>
    span.worker_id === row.worker_id && span.started_time === row.started_time;
  const newer = rows.map((row) => unsaved.find(isOf(row)) ?? row);
  return [...newer, ...unsaved.filter((span) => !rows.some(isOf(span)))];
}

function shown({ reason, spans, ...span }: SpanRow, look: JobLook | undefined): WorkerSpanShown {
  const worker = look?.workers.find(({ id }) => id === span.worker_id);
  const { busy } = span.ended_time === null ? (worker ?? {}) : {};
  const { worker_id, started_time, ready_time, ended_time, how } = span;
  return {
    ...{ worker_id, started_time, ready_time, ended_time },
    how: ended_time === null ? null : how,
    reason: reason === null ? null : hideInText(reason),
    batches: ended_time === null ? (worker?.batches ?? span.batches) : span.batches,
    workers: spans,
    batch_in_hand: busy?.batch ?? null,
    in_hand_s: busy === undefined ? null : Number((busy.forMs / 1000).toFixed(3)),
  };
}
