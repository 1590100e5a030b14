/**
 * Chooses the batches that go to a worker next. Batches that may have killed a worker or the server go out by
 * themselves (docs/decisions/0005-workers-after-a-crash.md).
 */
import { CREDIT_BYTES_MAX } from "../../contracts/limits/jobs.ts";
import type { LeasedBatch } from "../deliveries/lease-runs.ts";
import type { BatchWorker } from "../workers/batch-worker.ts";
import type { Attempts } from "./attempts.ts";
import type { Isolation } from "./isolation.ts";
import type { LeaseCursor } from "./lease-cursor.ts";

/** What former controllers recorded about the batches that are left. */
export interface FormerDeaths {
  /** Batches that were alone in hand when the server died: charged for that, once, before they go out again. */
  condemned: Set<number>;
  /** Batches that were interrupted too often: each runs alone on the server, recorded before it goes out. */
  alone: ReadonlySet<number>;
  /** Batches below this index go out recorded, one per worker: one of them may have brought the machine down. */
  recordedBefore: number;
}

export class NextBatches {
  private readonly cursor: LeaseCursor;
  private readonly attempts: Attempts;
  private readonly former: FormerDeaths;
  private readonly isolation: Isolation | undefined;

  constructor(cursor: LeaseCursor, attempts: Attempts, former: FormerDeaths, isolation?: Isolation) {
    this.isolation = isolation;
    this.cursor = cursor;
    this.attempts = attempts;
    this.former = former;
  }

  /** Takes as many batches as the worker has credit for. One that is recorded is the only one. */
  takeFor(worker: BatchWorker): LeasedBatch[] {
    const { outstanding } = worker.deliveries;
    const batches: LeasedBatch[] = [];
    let { bytes } = outstanding;
    for (let free = worker.freeCredit; free > 0 && bytes < CREDIT_BYTES_MAX; free--) {
      const index = this.take();
      if (index === undefined) break;
      const isByItself = this.isRecorded(index) || this.cursor.isSuspect(index);
      if (isByItself && (batches.length > 0 || outstanding.count > 0)) {
        this.cursor.putBack([index]);
        break;
      }
      const loaded = this.cursor.find(index);
      const segment = this.isolation?.leaseOf(index, loaded) ?? loaded;
      batches.push({ index, segment });
      bytes += segment.entryBytes(index);
      if (isByItself) break;
    }
    return batches;
  }

  /** Whether the batch is recorded as in hand before it goes out. */
  isRecorded(batch: number): boolean {
    return batch < this.former.recordedBefore || this.isAlone(batch);
  }

  /** Whether the batch runs with nothing else in hand on this server. */
  isAlone(batch: number): boolean {
    const { alone } = this.former;
    return alone.size > 0 && alone.has(batch);
  }

  /**
   * The next batch. One that is split is held until it is searched. A condemned one is charged first, and goes out again
   * if it has an attempt left.
   */
  private take(): number | undefined {
    const { condemned } = this.former;
    for (;;) {
      const index = this.cursor.take(this.isolation?.isFull !== true);
      if (index !== undefined && this.isolation?.setAside(index) === true) continue;
      if (index === undefined || !condemned.delete(index)) return index;
      this.attempts.fail(index, SERVER_DIED);
    }
  }
}

const SERVER_DIED = {
  cause: "death",
  fault: {
    stage: "predict",
    type: "WorkerDied",
    message:
      "the server or its machine died each time this batch was running, the last time while no other batch was running",
    traceback: "",
  },
  // Each part might bring it down again.
  maySplit: false,
} as const;
