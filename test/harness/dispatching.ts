/**
 * A job's dispatcher without a server: the real database, worker processes and segments, and a gate before each commit,
 * so that a test can check the moment between a report and its commit.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Dispatcher, type DispatcherOptions } from "../../src/batch/dispatch/dispatcher.ts";
import { ErrorBudget } from "../../src/batch/dispatch/error-budget.ts";
import { Isolation } from "../../src/batch/dispatch/isolation.ts";
import { LeaseCursor } from "../../src/batch/dispatch/lease-cursor.ts";
import { PartEntries } from "../../src/batch/dispatch/part-entries.ts";
import { Settlements } from "../../src/batch/dispatch/settlements.ts";
import { Solitude } from "../../src/batch/dispatch/solitude.ts";
import { saveParts } from "../../src/batch/isolate/isolated-rows.ts";
import type { BatchPart } from "../../src/batch/isolate/search.ts";
import { type DeadLetter, lettersOf, makeLetter } from "../../src/batch/letters/letters.ts";
import { type FailedBatchRow, failedBatches } from "../../src/batch/records/failed-batches.ts";
import { condemned, saveInHand } from "../../src/batch/records/interrupted-batches.ts";
import { itemsInFiles, writeItemsFile } from "../../src/batch/records/items-file.ts";
import { jobInput } from "../../src/batch/records/job-input.ts";
import { insertJob, type JobRow, jobById } from "../../src/batch/records/job-rows.ts";
import { BatchWorker } from "../../src/batch/workers/batch-worker.ts";
import type { BatchWorkerEvents } from "../../src/batch/workers/batch-worker-events.ts";
import { WorkerLosses } from "../../src/batch/workers/worker-losses.ts";
import { itemsFile } from "../../src/contracts/data-layout.ts";
import type { Database, Statements } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrations.ts";
import { appendSegments } from "../../src/database/segment-rows.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { LocalEngine } from "../../src/engine/local/local-engine.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { eventually } from "./eventually.ts";
import { LONG_LIFE } from "./lifetime.ts";
import { root } from "./server.ts";

const JOB = "job";
const EPOCH = 1;
const QUEUE = "letters";

interface Plan {
  items: unknown[];
  maxAttempts?: number;
  suspects?: number[];
  condemned?: number[];
  recordedBefore?: number;
  batchSize?: number;
  isolates?: boolean;
  /** Of batch 0, as a former controller left them. */
  parts?: BatchPart[];
  /** Bytes of errors that are kept whole. */
  errorBytes?: number;
  hasQueue?: boolean;
}

/** The batches that a worker got in one LEASE, and how many it had already. */
interface Lease {
  batches: number[];
  before: number;
}

export class Dispatching {
  readonly leases: Lease[] = [];
  /** The batch of each part that went out, in this order. Whole batches may go out twice before they are split. */
  readonly parts: number[] = [];
  readonly workers: BatchWorker[] = [];
  dispatcher!: Dispatcher;
  /** Lines of the job's log. */
  readonly lines: string[] = [];
  /** Commits that have reached the gate. */
  commits = 0;
  isSettled = false;
  /** Whether a worker that died gets a successor. */
  replacesWorkers = false;
  readonly solitude = new Solitude();
  error: Error | undefined;
  private readonly directory = mkdtempSync(join(tmpdir(), "quern-dispatching-"));
  private readonly engine: LocalEngine;
  private readonly predictor: string;
  private db!: Database;
  private gate: Promise<void> = Promise.resolve();
  private openGate: () => void = () => {};

  /** `predictor`: a directory with `predictor.py`. */
  constructor(predictor: string) {
    this.predictor = predictor;
    this.engine = new LocalEngine({
      runtimeDir: join(this.directory, "run"),
      instanceId: "ab",
      dataDir: "/nowhere",
      pythonRuntime: join(root, "python"),
      serverEnv: process.env,
      watchLog: () => () => {},
      delegatedCgroup: undefined,
    });
  }

  async start({
    items,
    maxAttempts = 1,
    suspects = [],
    condemned: charged = [],
    recordedBefore = 0,
    batchSize = 1,
    isolates = false,
    parts = [],
    errorBytes,
    hasQueue = false,
  }: Plan): Promise<void> {
    this.db = openSqliteDatabase(join(this.directory, "quern.db"));
    await migrate(this.db);
    const path = itemsFile(this.directory, JOB);
    const lines = Buffer.from(items.map((item) => `${JSON.stringify(item)}\n`).join(""));
    await writeItemsFile(path, lines);
    await insertJob(this.db, row(maxAttempts));
    await this.db.run("UPDATE jobs SET epoch = ?", [EPOCH]);
    const ranges = [{ path: "", etag: "own", start: 0, end: lines.length }];
    const totalBatches = Math.ceil(items.length / batchSize);
    const counts = { batch_count: totalBatches, item_count: items.length };
    await appendSegments(this.db, JOB, [{ first_batch: 0, ...counts, ranges, has_blank_lines: false }]);
    await saveParts(this.db, JOB, 0, parts);
    for (const batch of charged) await saveInHand(this.db, JOB, 1, batch, "alone");
    // Nothing but the job's own file is read.
    const own = { db: this.db, jobId: JOB, items: itemsInFiles(this.directory) };
    const input = jobInput({ ...own, store: undefined as unknown as ObjectStore });
    const settlements = new Settlements(this.gated(), 0, {
      jobId: JOB,
      epoch: EPOCH,
      round: 1,
      reach: () => {},
      onLetters: () => {},
      onCommitted: () => this.dispatcher.committed(),
      onError: (error) => this.fail(error),
    });
    const errors = new ErrorBudget((line) => this.lines.push(line), errorBytes);
    const of = { db: this.db, jobId: JOB, settlements, batchSize, errors };
    const isolation = isolates ? new Isolation({ ...of, kind: "items", letterOf: undefined }) : undefined;
    const cursor = new LeaseCursor(this.db, JOB, input, batchSize, isolation);
    this.dispatcher = new Dispatcher({
      cursor,
      settlements,
      isolation,
      totalBatches,
      condemned: new Set(charged),
      alone: new Set(suspects),
      recordedBefore,
      solitude: this.solitude,
      losses: new WorkerLosses(),
      maxAttempts,
      attempts: new Map(),
      errors,
      letterOf: hasQueue ? letterOf : undefined,
      timeoutMs: undefined,
      onAllSettled: () => {
        this.isSettled = true;
      },
      onWorkersKeepDying: ({ reason }) => this.fail(new Error(reason.message)),
      onInputError: (error) => this.fail(error),
      onFault: (error) => this.fail(error),
    });
    await cursor.fill();
  }

  /** Ready, and still without batches. */
  async addWorker(): Promise<BatchWorker> {
    const id = `b-${this.workers.length}`;
    const running = await this.engine.start({
      worker_id: id,
      project: this.predictor,
      python_path: undefined,
      env: {},
      isBackground: true,
      interpreter: { python: process.env.QUERN_PYTHON ?? "python3", bin: undefined, virtualEnv: undefined },
      logFile: join(this.directory, "worker.log"),
      memoryLimitBytes: undefined,
      visibleGpus: undefined,
    });
    let isReady = false;
    const events: BatchWorkerEvents = {
      onReady: () => {
        isReady = true;
      },
      onLongStart: () => {},
      onSetUpFailed: (_, fault) => this.fail(new Error(fault.message)),
      onInterrupted: () => this.fail(new Error("the worker was taken away")),
      onDiskFull: () => this.fail(new Error("the disk is full")),
      onDeath: (dead, death) => {
        this.dispatcher.died(dead, death);
        if (this.replacesWorkers && this.error === undefined)
          void this.addWorker().then((next) => this.dispatcher.addWorker(next));
      },
      onFault: (error) => this.fail(error),
    };
    const worker = new BatchWorker(running, events, { lifetime: LONG_LIFE });
    this.workers.push(worker);
    this.watch(worker);
    const spec = { api_id: "v1", project: this.predictor, path: "predictor.py", api_config: "{}" };
    void worker.setUp({ ...spec, job_spec: { job_id: JOB }, concurrency: 1, threads: 1 }, EPOCH);
    await eventually("the worker is ready", () => isReady);
    return worker;
  }

  /** The guilty items, as `batch.item`. */
  async guiltyItems(): Promise<string[]> {
    const rows = await this.db.all<{ batch_index: number; first_item: number }>(
      "SELECT batch_index, first_item FROM failed_items ORDER BY batch_index, first_item",
    );
    return rows.map(({ batch_index, first_item }) => `${batch_index}.${first_item}`);
  }

  failures(): Promise<FailedBatchRow[]> {
    return failedBatches(this.db, JOB, -1, 100);
  }

  /** The errors that are recorded of batches and guilty items, with those of attempts that were not the last. */
  async errors(
    table: "batches" | "failed_items",
  ): Promise<{ error_json: string | null; error_group: string }[]> {
    return this.db.all(`SELECT error_json, error_group FROM ${table} ORDER BY batch_index`);
  }

  letters(): Promise<DeadLetter[]> {
    return lettersOf(this.db, QUEUE, "", 100);
  }

  /** Batches that are recorded as alone in hand. */
  alone(): Promise<Set<number>> {
    return condemned(this.db, JOB);
  }

  /** From here on each commit waits. */
  closeGate(): void {
    this.gate = new Promise((resolve) => {
      this.openGate = resolve;
    });
  }

  letCommitsPass(): void {
    this.openGate();
  }

  async job(): Promise<JobRow> {
    return (await jobById(this.db, JOB))!;
  }

  async settled(): Promise<void> {
    await eventually("all batches are settled", () => {
      if (this.error !== undefined) throw this.error;
      return this.isSettled;
    });
  }

  async stop(): Promise<void> {
    this.openGate();
    this.dispatcher.close();
    await Promise.all(this.workers.map((worker) => worker.stop(0)));
    await this.db.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  private gated(): Database {
    const { db } = this;
    return {
      all: (sql, params) => db.all(sql, params),
      run: (sql, params) => db.run(sql, params),
      close: () => db.close(),
      transaction: async <T>(work: (tx: Statements) => Promise<T>) => {
        this.commits++;
        await this.gate;
        return db.transaction(work);
      },
    };
  }

  private watch(worker: BatchWorker): void {
    const lease = worker.lease.bind(worker);
    worker.lease = (batches) => {
      this.leases.push({
        batches: batches.map(({ index }) => index),
        before: worker.deliveries.outstanding.count,
      });
      for (const { index, segment } of batches) if (segment instanceof PartEntries) this.parts.push(index);
      lease(batches);
    };
  }

  private fail(error: Error): void {
    this.error = error;
  }
}

const letterOf: NonNullable<DispatcherOptions["letterOf"]> = ({ batch_index, fault }, receiveCount, body) =>
  makeLetter({
    ...{
      queue: QUEUE,
      api_name: "api",
      job_id: JOB,
      round: 1,
      batch_index,
      receiveCount,
      body,
      error: fault,
    },
  });

function row(max_receive_count: number) {
  return {
    job_id: JOB,
    api_name: "jobs",
    api_id: "v1",
    submission_json: "{}",
    config_json: "{}",
    workers: 1,
    timeout_s: null,
    max_receive_count,
    dead_letter_arn: null,
    dead_letter_queue: null,
    created_time: "2026-01-01T00:00:00.000000000Z",
    has_older_names: 0,
  };
}
