/** Where a job's batches come from: the object store, or the job's own file of items. */
import { join } from "node:path";
import type { ObjectStore, OpenObject } from "../object-store/object-store.ts";

export interface JobInput {
  open(path: string): Promise<OpenObject>;
}

/** The path of the job's own files; removed with the job. */
export function jobDirectory(dataDir: string, jobId: string): string {
  return join(dataDir, "jobs", jobId);
}

export function ownItemsFile(dataDir: string, jobId: string): string {
  return join(jobDirectory(dataDir, jobId), "items.jsonl");
}

/** `openOwn` reads files of the data directory, which the store refuses. An empty path is the job's own file. */
export function jobInput(
  store: ObjectStore,
  openOwn: (path: string) => Promise<OpenObject>,
  ownFile: string,
): JobInput {
  return { open: (path) => (path === "" ? openOwn(ownFile) : store.open(path)) };
}

/** The input changed, or is gone, after it was enqueued. */
export class InputError extends Error {}
