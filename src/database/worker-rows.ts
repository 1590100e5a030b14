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
  /** The GPUs that it may see, separated by commas. */
  gpus: string;
  /** The data directory that it works for; empty in rows of releases without instances. */
  instance_id: string;
  /** The hash of its capability; empty in rows of releases without capabilities. */
  capability: string;
  /** The port in its QUERN_API_URL. */
  api_port: number;
}

const COLUMNS = [
  "worker_id",
  "api_name",
  "api_id",
  "predictor_id",
  "job_id",
  "pid",
  "process_start",
  "socket",
  "token",
  "note",
  "gpus",
  "instance_id",
  "capability",
  "api_port",
] as const satisfies (keyof WorkerRecord)[];

export async function saveWorker(db: Database, record: WorkerRecord): Promise<void> {
  const places = COLUMNS.map(() => "?").join(", ");
  const values = COLUMNS.map((column) => record[column]);
  await db.run(`INSERT INTO workers (${COLUMNS.join(", ")}) VALUES (${places})`, values);
}

/** The worker works for another job from now on. */
export async function setJobOfWorker(db: Database, workerId: string, jobId: string): Promise<void> {
  await db.run("UPDATE workers SET job_id = ? WHERE worker_id = ?", [jobId, workerId]);
}

export async function deleteWorker(db: Statements, workerId: string): Promise<void> {
  await db.run("DELETE FROM workers WHERE worker_id = ?", [workerId]);
}

export function allWorkers(db: Statements): Promise<WorkerRecord[]> {
  return db.all<WorkerRecord>("SELECT * FROM workers ORDER BY worker_id");
}

/** Which API each worker serves. */
export function apisOfWorkers(db: Statements): Promise<{ worker_id: string; api: string }[]> {
  return db.all("SELECT worker_id, api_name AS api FROM workers");
}

/** Forgets the workers of the original that this directory is a copy of. They keep running, and are not ours to end. */
export async function disownWorkers(db: Statements): Promise<void> {
  await db.run("DELETE FROM workers");
}
