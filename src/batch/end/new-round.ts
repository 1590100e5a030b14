/**
 * Begins new rounds of an ended job (docs/contract/jobs.md#round-rules). `redrive` puts failed batches back with fresh
 * attempts; `resume` continues with the batches that were never settled. The run that follows works as after a restart
 * of the server.
 *
 * A job may have millions of failed batches, so that a redrive takes many commits, each with its counts. The last one
 * begins the round. If the server ends before it, the job is one with batches that were never settled: `resume`
 * continues it. If it ends while a split batch is prepared, that batch is still failed, and the next redrive continues.
 */
import { timestamp } from "../../base/clock.ts";
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { quotedBeginning } from "../../base/printable.ts";
import type { RedriveFilter } from "../../contracts/jobs.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import { ROUND_REASON_LENGTH_MAX } from "../../contracts/limits/jobs.ts";
import type { Database, Statements } from "../../database/database.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";
import { continueCounting } from "../../series/batch-rows.ts";
import { isReopened, reopenedBatches } from "../isolate/reopen-batches.ts";
import { findOutput } from "../output/job-outputs.ts";
import { errorGroupOf, failedBatches } from "../records/failed-batches.ts";
import { beginRound } from "../records/job-moves.ts";
import { type JobRow, jobById } from "../records/job-rows.ts";
import { countEnded } from "../records/job-totals.ts";
import { noteBegun, noteOutcome, type RoundBegun } from "../rounds/round-rows.ts";
import { endedJob, isSettled, putBack, wrongState } from "./put-back.ts";
import { type LetterOfJob, putBackLetters, type RedrivenLetters, removeTaken } from "./redrive-letters.ts";

/** Few: an error has up to 97 KiB. Of a job that isolates, one: a batch may have thousands of parts. */
const BATCHES_A_PIECE = 20;
const SPLIT_BATCHES_A_PIECE = 1;
const SEARCHED_BATCHES_A_PIECE = 5;
/** Errors are searched for so long in a turn of the event loop, by all redrives together: one takes up to 1 ms. */
const SEARCH_SLICE_MS = 1;
const SEARCH_SLICES = new TimeSlices(SEARCH_SLICE_MS);

export class NewRounds {
  private readonly db: Database;
  private readonly reach: ReachKillPoint;
  private readonly assertDeployed: (tx: Statements, apiName: string) => Promise<string | null>;
  /** Jobs that a new round is being prepared for. */
  private readonly preparing = new Set<string>();

  /** `assertDeployed` throws `api_not_found`: the API may be deleted while a round is prepared. */
  constructor(
    db: Database,
    assertDeployed: (tx: Statements, apiName: string) => Promise<string | null>,
    reach: ReachKillPoint = () => {},
  ) {
    this.db = db;
    this.reach = reach;
    this.assertDeployed = assertDeployed;
  }

  /** Puts the failed batches back that match; resolves to their number. Throws `wrong_state`. */
  redrive(jobId: string, filter: RedriveFilter, by: DoneBy): Promise<number> {
    return this.alone(jobId, async () => {
      const job = await endedJob(this.db, jobId);
      if (!isSettled(job))
        throw wrongState(
          job,
          `it ended before all its batches were settled; resume it first (\`quern job resume ${job.api_name} ${jobId}\`)`,
        );
      await noteOutcome(this.db, job);
      const batches = await putBackMatching(this.db, job, filter);
      if (batches === 0) throw wrongState(job, noMatch(filter));
      await this.begin(jobId, "status_running", { how: "redriven", by, selection: selectionOf(filter) });
      return batches;
    });
  }

  /**
   * Begins a round for the batches that were never settled, or for an output that could not be written. Throws
   * `wrong_state`.
   */
  resume(jobId: string, by: DoneBy): Promise<void> {
    return this.alone(jobId, async () => {
      const job = await endedJob(this.db, jobId);
      if (isSettled(job) && !(await lacksManifest(this.db, job)))
        throw wrongState(
          job,
          `all its batches are settled${job.failed_batches > 0 ? `; \`quern job redrive ${job.api_name} ${jobId}\` runs the failed ones again` : ""}`,
        );
      const status = job.total_batch_count === null ? "status_enqueuing" : "status_running";
      await this.begin(jobId, status, { how: "resumed", by, selection: null });
    });
  }

  /**
   * Puts back the batches or items of these messages, and removes the messages in the commit that begins the round. After
   * a kill before that they are all there, and the same call finishes the work. Throws `wrong_state`.
   */
  redriveLetters(jobId: string, letters: readonly LetterOfJob[], by: DoneBy): Promise<RedrivenLetters> {
    return this.alone(jobId, async () => {
      const job = await endedJob(this.db, jobId);
      await noteOutcome(this.db, job);
      const result = await putBackLetters(this.db, job, letters);
      this.reach("redrive-put-back");
      const { taken } = result;
      const selection = `${taken.length === 1 ? "1 message" : `${taken.length} messages`} of its queue`;
      if (taken.length > 0)
        await this.begin(jobId, "status_running", { how: "redriven", by, selection }, (tx) =>
          removeTaken(tx, taken),
        );
      this.reach("redrive-begun");
      return result;
    });
  }

  private async begin(
    jobId: string,
    status: "status_enqueuing" | "status_running",
    round: RoundBegun,
    also: (tx: Statements) => Promise<void> = async () => {},
  ): Promise<void> {
    await this.db.transaction(async (tx) => {
      const job = await endedJob(tx, jobId);
      const apiPausedTime = await this.assertDeployed(tx, job.api_name);
      await countEnded(tx, job, -1);
      await continueCounting(tx, jobId);
      const startedTime = timestamp();
      await noteOutcome(tx, job);
      await noteBegun(tx, job, round, startedTime);
      await beginRound(tx, jobId, { status, startedTime, apiPausedTime });
      await also(tx);
    });
  }

  private async alone<T>(jobId: string, work: () => Promise<T>): Promise<T> {
    if (this.preparing.has(jobId))
      throw wrongState((await jobById(this.db, jobId))!, "one is being prepared");
    this.preparing.add(jobId);
    try {
      return await work();
    } finally {
      this.preparing.delete(jobId);
    }
  }
}

/** Whether the end of the job's last round should have written a manifest and could not. */
async function lacksManifest(db: Database, { job_id, round }: JobRow): Promise<boolean> {
  const output = await findOutput(db, job_id);
  return output !== undefined && output.manifest_round !== round;
}

/** Piece by piece, so that others have the event loop and the database between two of them. */
async function putBackMatching(
  db: Database,
  { job_id: jobId, isolates }: JobRow,
  { error, like }: RedriveFilter,
): Promise<number> {
  const group = like === undefined ? undefined : await errorGroupOf(db, jobId, like);
  if (like !== undefined && group === undefined) return 0;
  let count = 0;
  const isWanted = async (json: string) => {
    if (SEARCH_SLICES.isOver) await SEARCH_SLICES.rest();
    return isMatch(json, error);
  };
  const whole = error === undefined ? BATCHES_A_PIECE : SEARCHED_BATCHES_A_PIECE;
  const most = isolates === 1 ? SPLIT_BATCHES_A_PIECE : whole;
  for (let after = -1; ; ) {
    const rows = await failedBatches(db, jobId, after, most, group);
    if (rows.length === 0) return count;
    const split = isolates === 1 ? await reopenedBatches(db, jobId, rows, isWanted) : [];
    const known = new Set(split.map(({ batchIndex }) => batchIndex));
    const wanted = new Set<number>();
    for (const { batch_index, error_json } of rows) {
      if (!known.has(batch_index) && (await isWanted(error_json))) wanted.add(batch_index);
    }
    const opened = split.filter(isReopened);
    for (const { batchIndex } of opened) wanted.add(batchIndex);
    const batches = [...wanted].sort((a, b) => a - b);
    if (batches.length > 0) await putBack(db, jobId, batches, opened);
    count += batches.length;
    after = rows[rows.length - 1]!.batch_index;
  }
}

/** In the words of the list of rounds; null is all. */
function selectionOf({ error, like }: RedriveFilter): string | null {
  if (error !== undefined) return `errors with ${quotedBeginning(error)}`.slice(0, ROUND_REASON_LENGTH_MAX);
  return like === undefined ? null : `errors like that of batch ${like}`;
}

function noMatch({ error, like }: RedriveFilter): string {
  if (error !== undefined) return `none of its failed batches has ${quotedBeginning(error)} in its error`;
  return like === undefined ? "it has no failed batch" : `batch ${like} has not failed`;
}

function isMatch(errorJson: string, error: string | undefined): boolean {
  return error === undefined || describeFault(JSON.parse(errorJson) as WorkerFault).includes(error);
}
