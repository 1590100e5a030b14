/**
 * Ends the batch workers of a former controller, and counts the batches that they had in hand
 * (docs/decisions/0005-workers-after-a-crash.md). They would stop by themselves after that batch. We do not wait,
 * because nobody can receive its result.
 */
import { rmSync } from "node:fs";
import { timestamp } from "../../base/clock.ts";
import type { Database } from "../../database/database.ts";
import { takeBoot } from "../../database/owner-row.ts";
import { allWorkers, deleteWorker, type WorkerRecord } from "../../database/worker-rows.ts";
import type { Engine } from "../../engine/engine.ts";
import { readDeliveryNote } from "../../protocol/delivery-note.ts";
import { addInterruptions } from "../records/interrupted-batches.ts";
import { loseSpans } from "../spans/span-rows.ts";

export interface FormerWorkers {
  /** Workers of real-time APIs, which keep running. */
  replicas: WorkerRecord[];
  /** How many workers each job had when the machine went down; empty if it did not. */
  lostWorkers: Map<string, number>;
}

interface BatchWorkerRecord extends WorkerRecord {
  job_id: string;
}

/**
 * `notes`: the directory of batch workers' notes, which is removed. `boot`: identifies this boot of the machine;
 * undefined if the system does not provide it.
 */
export async function endFormerWorkers(
  db: Database,
  engine: Engine,
  notes: string,
  boot: string | undefined,
): Promise<FormerWorkers> {
  const records = await allWorkers(db);
  engine.removeRemains(records);
  const former = records.filter((record): record is BatchWorkerRecord => record.job_id !== null);
  for (const record of former) engine.end(record);
  const noted = former.flatMap(inHandOf);
  // One commit, so that a kill neither forgets an interruption nor counts one twice.
  const formerBoot = await db.transaction(async (tx) => {
    await addInterruptions(tx, noted);
    for (const { worker_id } of former) await deleteWorker(tx, worker_id);
    await loseSpans(tx, timestamp());
    return takeBoot(tx, boot);
  });
  for (const { note, socket } of former) for (const path of [note, socket]) rmSync(path, { force: true });
  // A kill may leave notes without a record.
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
