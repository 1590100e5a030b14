/**
 * Ends the batch workers that a former controller left, and counts the batches that they had in hand
 * (docs/decisions/0005-workers-after-a-crash.md). They stop after the batch in hand by themselves; we do not wait for
 * that, because its result has nobody to go to.
 */
import { rmSync } from "node:fs";
import type { Database } from "../database/database.ts";
import { takeBoot } from "../database/migrations.ts";
import { allWorkers, deleteWorker, type WorkerRecord } from "../database/worker-records.ts";
import type { Engine } from "../engine/engine.ts";
import { readDeliveryNote } from "../protocol/delivery-note.ts";
import { addInterruptions } from "./batch-records.ts";

export interface FormerWorkers {
  /** Those of real-time APIs live on. */
  replicas: WorkerRecord[];
  /** How many workers each job had when the machine went down; empty when it did not. */
  lostWorkers: Map<string, number>;
}

interface BatchWorkerRecord extends WorkerRecord {
  job_id: string;
}

/**
 * `notes`: the directory of batch workers' notes, which is empty afterwards. `boot` tells this boot of the machine from others,
 * if the system tells.
 */
export async function endFormerWorkers(
  db: Database,
  engine: Engine,
  notes: string,
  boot: string | undefined,
): Promise<FormerWorkers> {
  const records = await allWorkers(db);
  const former = records.filter((record): record is BatchWorkerRecord => record.job_id !== null);
  for (const record of former) engine.end(record);
  const noted = former.flatMap(inHandOf);
  // One commit: a kill forgets no interruption, and counts none twice.
  const formerBoot = await db.transaction(async (tx) => {
    await addInterruptions(tx, noted);
    for (const { worker_id } of former) await deleteWorker(tx, worker_id);
    return takeBoot(tx, boot);
  });
  for (const { note, socket } of former) for (const path of [note, socket]) rmSync(path, { force: true });
  // Those that a kill left without a record.
  rmSync(notes, { recursive: true, force: true });
  const isSameBoot = formerBoot === null || boot === undefined || formerBoot === boot;
  return {
    replicas: records.filter(({ job_id }) => job_id === null),
    lostWorkers: isSameBoot ? new Map() : countByJob(former),
  };
}

function inHandOf({ job_id, note: path }: BatchWorkerRecord): { job_id: string; batch_index: number }[] {
  const note = readDeliveryNote(path);
  return note?.busy ? [{ job_id, batch_index: note.batch_index }] : [];
}

function countByJob(workers: readonly BatchWorkerRecord[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { job_id } of workers) counts.set(job_id, (counts.get(job_id) ?? 0) + 1);
  return counts;
}
