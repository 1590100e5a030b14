/** The rows of running workers, so that the next controller can adopt or end them. */
import type { Database, Statements } from "./database.ts";

export interface WorkerRecord {
  worker_id: string;
  api_name: string;
  api_id: string;
  predictor_id: string;
  /** Null for a replica of a real-time API. */
  job_id: string | null;
  pid: number;
  process_start: string;
  socket: string;
  token: string;
  note: string;
  /** The GPUs that it may see, with commas. */
  gpus: string;
}

export async function saveWorker(db: Database, record: WorkerRecord): Promise<void> {
  const { worker_id, api_name, api_id, predictor_id, job_id, pid, process_start, socket, token, note, gpus } =
    record;
  await db.run("INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
    worker_id,
    api_name,
    api_id,
    predictor_id,
    job_id,
    pid,
    process_start,
    socket,
    token,
    note,
    gpus,
  ]);
}

export async function deleteWorker(db: Statements, workerId: string): Promise<void> {
  await db.run("DELETE FROM workers WHERE worker_id = ?", [workerId]);
}

export function allWorkers(db: Statements): Promise<WorkerRecord[]> {
  return db.all<WorkerRecord>("SELECT * FROM workers ORDER BY worker_id");
}
