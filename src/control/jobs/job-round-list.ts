/** `GET /API/JOB/rounds`: when each round of a job began, how and by whom, and what became of its batches. */
import type { Context } from "hono";
import { type JobRow, reasonOf } from "../../batch/records/job-rows.ts";
import { type RoundRow, unrecordedRound } from "../../batch/rounds/round-rows.ts";
import type { RoundShown } from "../../contracts/http/round-operations.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";
import type { StatusDeps } from "./job-answers.ts";

export interface RoundsDeps extends StatusDeps {
  lists: OpenStreams;
  reads: ReadsInTurn;
}

export function roundsResponse(c: Context, deps: RoundsDeps, job: JobRow): Promise<Response> {
  return deps.reads.take(c, (pass) => jsonChunks(c, deps.lists, roundsText(c, deps, job), pass));
}

/** As JobRoundsShown, a round at a time: each has two texts to hide secrets in. */
async function* roundsText(c: Context, { jobs, shown }: StatusDeps, job: JobRow): AsyncGenerator<string> {
  const rows = await jobs.records.rounds(job.job_id);
  const mayName = shown.mayNameOthers(c);
  let separator = "";
  yield '{"rounds":[';
  for (const round of shownRounds(job, rows)) {
    yield separator + JSON.stringify(mayName ? round : unnamed(round));
    separator = ",";
  }
  yield "]}";
}

/** Pure. The first round and the last one are always there; of the others, those that were recorded. */
export function* shownRounds(job: JobRow, rows: readonly RoundRow[]): Generator<RoundShown> {
  const known = new Map(rows.map((row) => [row.round, row]));
  for (const round of [1, job.round]) if (!known.has(round)) known.set(round, unrecordedRound(job, round));
  for (const row of [...known.values()].sort((a, b) => a.round - b.round))
    yield shownRound(job, row.round === job.round ? withOutcome(row, job) : row);
}

/** The outcome of the last round, so far, is in the job's row. */
function withOutcome(row: RoundRow, job: JobRow): RoundRow {
  if (row.status !== null) return row;
  return {
    ...row,
    ended_time: job.end_time,
    status: job.status,
    reason: job.end_time === null ? null : (reasonOf(job)?.message ?? null),
    succeeded_after: job.succeeded,
    failed_after: job.failed_batches,
  };
}

function shownRound({ total_batch_count: total }: JobRow, row: RoundRow): RoundShown {
  const { round, how, by_id, by_name, selection, begun_time, ended_time, status, reason } = row;
  const { succeeded_before, failed_before, succeeded_after, failed_after } = row;
  const hidden = (text: string | null) => (text === null ? null : hideInText(text));
  const settled = total === null ? null : difference(total, succeeded_before);
  return {
    ...{ round, how, by: by_id, by_name, selection: hidden(selection) },
    ...{ begun_time, ended_time, status, reason: hidden(reason) },
    batches: settled === null ? null : difference(settled, failed_before),
    succeeded: difference(succeeded_after, succeeded_before),
    failed: difference(failed_after, failed_before),
  };
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : Math.max(0, after - before);
}

function unnamed(round: RoundShown): RoundShown {
  return { ...round, by: null, by_name: null };
}
