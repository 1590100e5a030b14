/**
 * Collects what workers reported and commits it together: done bits, counts and failures of a job in one transaction.
 * Commits are at least COMMIT_INTERVAL_MS apart (docs/decisions/0004-commit-order.md).
 */
import { contain } from "../../base/boundary.ts";
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { COMMIT_INTERVAL_MS } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { markSettled, type Segment, writeSettled } from "../../database/segment-rows.ts";
import { IsolatedOutcomes, type JoinRows } from "../isolate/isolated-outcomes.ts";
import type { FailedItems } from "../isolate/isolated-rows.ts";
import type { BatchPart, Search } from "../isolate/search.ts";
import { type DeadLetter, saveLetter } from "../letters/letters.ts";
import { type FailedAttempt, saveFailedAttempt } from "../records/batch-rows.ts";
import { type InHand, saveInHand } from "../records/interrupted-batches.ts";
import { addSettled, FormerOwner } from "../records/owned-job.ts";
import { NO_ROWS, type RowsPlace, type SettledRows } from "../rows/rows-place.ts";
import type { AdmitFailures } from "./admit-failures.ts";

export interface SettlementsOptions {
  jobId: string;
  epoch: number;
  round: number;
  reach: ReachKillPoint;
  /** After each commit; a worker's credit returns only now. */
  onCommitted: () => void;
  /** Messages for dead letter queues are durable: they may be sent. */
  onLetters: () => void;
  /** The commit failed: another owner has the job, or the disk is full. */
  onError: (error: Error) => void;
  /** The rows of the job's output; undefined if it has none. */
  output?: SettledOutput | undefined;
  admit?: AdmitFailures;
}

/** The rows of settled batches: durable before the commit that counts them. */
export interface SettledOutput {
  /** The rows have come. Called at once: the worker's file may be removed as soon as it is gone. */
  hold(settled: SettledRows): void;
  save(settled: readonly SettledRows[]): Promise<void>;
  /** They are counted. */
  committed(settled: readonly SettledRows[]): void;
  join: JoinRows;
}

/** A part that failed, and what is recorded with it. */
interface FailedPart {
  /** The parts of the search that changed. */
  changed: readonly BatchPart[];
  /** Its failure, if it is guilty. */
  failed?: FailedItems;
  /** Of the failure, in the same commit. */
  letter?: DeadLetter | undefined;
}

export class Settlements {
  /** The job's settled batches, as in its row after the last commit. */
  settledBatches: number;
  private readonly db: Database;
  private readonly options: SettlementsOptions;
  private touched = new Set<Segment>();
  private failures: FailedAttempt[] = [];
  private letters: DeadLetter[] = [];
  /** Batches recorded as in hand; `inHand` has the changes that are not committed yet. */
  private readonly recorded = new Set<number>();
  private inHand = new Map<number, InHand>();
  private succeeded = 0;
  private successUs = 0;
  /** Of a job with output, the batches that the next commit settles. */
  private settledRows: SettledRows[] = [];
  /** Of batches that are split, what the next commit has. */
  private isolated = new IsolatedOutcomes();
  private onDurable: (() => void)[] = [];
  private timer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  private committing: Promise<void> | undefined;
  private lastCommitMs = 0;
  /** The segments in memory have bits whose counts were not committed: a later commit would save them alone. */
  private isBroken = false;

  constructor(db: Database, settledBatches: number, options: SettlementsOptions) {
    this.db = db;
    this.settledBatches = settledBatches;
    this.options = options;
  }

  /** False if the batch was settled before: it is not counted again then. `place`: of its rows, if there are any. */
  succeed(segment: Segment, batchIndex: number, place: RowsPlace | undefined): boolean {
    if (!markSettled(segment, batchIndex)) return false;
    this.touched.add(segment);
    this.succeeded++;
    if (place !== undefined) this.addRows({ batchIndex, place });
    if (this.recorded.size > 0) this.recordBack(batchIndex);
    return true;
  }

  /** Records, in the next commit, that a batch goes out. */
  recordInHand(batchIndex: number, inHand: "recorded" | "alone"): void {
    this.recorded.add(batchIndex);
    this.inHand.set(batchIndex, inHand);
  }

  private addRows(settled: SettledRows): void {
    this.settledRows.push(settled);
    this.options.output?.hold(settled);
  }

  /** Records that a batch is no longer in hand, if it was recorded as such. */
  recordBack(batchIndex: number): void {
    if (this.recorded.delete(batchIndex)) this.inHand.set(batchIndex, "no");
  }

  /** Records that no batch is in hand any more: results that still arrive do not count. */
  recordAllBack(): void {
    for (const batchIndex of this.recorded) this.recordBack(batchIndex);
  }

  addSuccessTime(microseconds: number): void {
    this.successUs += microseconds;
  }

  /** Records a failed attempt. The final one settles the batch; its dead letter is in the same commit. */
  fail(segment: Segment, failed: FailedAttempt, letter: DeadLetter | undefined): void {
    if (failed.isFinal && !markSettled(segment, failed.batch_index)) return;
    this.recordBack(failed.batch_index);
    if (failed.isFinal) this.touched.add(segment);
    if (failed.isFinal && this.options.output !== undefined)
      this.settledRows.push({ batchIndex: failed.batch_index, place: NO_ROWS });
    this.failures.push(failed);
    if (letter !== undefined) this.letters.push(letter);
  }

  /** A batch that has failed is split into `parts`. */
  split(batchIndex: number, parts: readonly BatchPart[]): void {
    this.isolated.change(batchIndex, parts);
  }

  /** A part has succeeded. `changed`: the parts of the search that changed. */
  succeedPart(segment: Segment, batchIndex: number, search: Search, changed: readonly BatchPart[]): void {
    for (const { place } of changed)
      if (place !== undefined) this.options.output?.hold({ batchIndex, place });
    this.isolated.change(batchIndex, changed);
    this.afterPart(segment, batchIndex, search);
  }

  /** Records a failed attempt of a part. */
  failPart(
    segment: Segment,
    batchIndex: number,
    search: Search,
    { changed, failed, letter }: FailedPart,
  ): void {
    // Also if a former controller recorded it: a batch that was alone when the server died is charged once for that.
    this.recorded.add(batchIndex);
    this.isolated.failedAttempts++;
    this.isolated.change(batchIndex, changed, failed);
    if (letter !== undefined) this.letters.push(letter);
    this.afterPart(segment, batchIndex, search);
  }

  private afterPart(segment: Segment, batchIndex: number, search: Search): void {
    if (this.recorded.size > 0) this.recordBack(batchIndex);
    if (search.current !== undefined || !markSettled(segment, batchIndex)) return;
    this.touched.add(segment);
    this.isolated.settle(batchIndex, search.all);
  }

  /** Commits soon; `then` runs once all that was reported up to now is durable. */
  commitSoon(then: () => void): void {
    this.onDurable.push(then);
    if (this.isBroken || this.timer !== undefined || this.committing !== undefined) return;
    const wait = this.lastCommitMs + COMMIT_INTERVAL_MS - performance.now();
    const commit = () => {
      this.timer = undefined;
      contain("a job's commit", () => this.commit(), this.options.onError);
    };
    this.timer = wait <= 0 ? setImmediate(commit) : setTimeout(commit, wait);
  }

  /** Commits what was reported so far and waits for it. */
  async drain(): Promise<void> {
    await this.committing;
    if (this.isBroken) return;
    if (this.onDurable.length > 0 || this.touched.size > 0 || this.inHand.size > 0) await this.commit();
  }

  private async commit(): Promise<void> {
    if (this.committing !== undefined) return this.committing;
    const admitted = this.options.admit?.(this.failures, this.letters, this.isolated);
    this.committing = (admitted?.then(() => this.write()) ?? this.write()).catch((error: Error) => {
      this.isBroken = true;
      this.options.onError(error);
    });
    await this.committing;
    this.committing = undefined;
    this.lastCommitMs = performance.now();
    if (!this.isBroken && this.onDurable.length > 0) this.commitSoon(() => {});
  }

  private async write(): Promise<void> {
    const { jobId, epoch, round, reach, output } = this.options;
    // Copies: while a full disk delays the write, more batches may be marked.
    const segments = [...this.touched].map((segment) => ({ ...segment, settled: segment.settled.slice() }));
    const { failures, letters, inHand, successUs, onDurable, settledRows, isolated } = this;
    const succeeded = this.succeeded + isolated.count(false);
    const failedBatches = failures.filter(({ isFinal }) => isFinal).length + isolated.count(true);
    this.touched = new Set();
    this.failures = [];
    this.letters = [];
    this.inHand = new Map();
    this.succeeded = 0;
    this.successUs = 0;
    this.onDurable = [];
    this.settledRows = [];
    // Also an empty one: what comes while this commit waits is of the next one.
    this.isolated = new IsolatedOutcomes();
    if (!isolated.isEmpty && output !== undefined) settledRows.push(...(await joinedRows(isolated, output)));
    if (output !== undefined && (settledRows.length > 0 || !isolated.isEmpty)) {
      await output.save(settledRows);
      reach("rows-after-sync");
    }
    await this.db.transaction(async (tx) => {
      for (const segment of segments) await writeSettled(tx, jobId, segment);
      for (const [batch, state] of inHand) await saveInHand(tx, jobId, round, batch, state);
      if (!isolated.isEmpty) await isolated.save(tx, jobId, round);
      for (const failed of failures) await saveFailedAttempt(tx, jobId, round, failed);
      for (const letter of letters) await saveLetter(tx, letter);
      const counts = {
        succeeded,
        failedAttempts: failures.length + isolated.failedAttempts,
        failedBatches,
        successUs,
      };
      if (!(await addSettled(tx, jobId, epoch, counts))) throw new FormerOwner();
      reach("ack-before-commit");
    });
    reach("ack-after-commit");
    output?.committed(settledRows);
    this.settledBatches += succeeded + failedBatches;
    if (letters.length > 0) this.options.onLetters();
    for (const then of onDurable) then();
    this.options.onCommitted();
  }
}

/** The rows of batches whose search has ended, in one place each. */
async function joinedRows(isolated: IsolatedOutcomes, output: SettledOutput): Promise<SettledRows[]> {
  const joined = await isolated.joinRows(output.join);
  for (const settled of joined) output.hold(settled);
  return joined;
}
