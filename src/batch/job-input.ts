/** Where a job's batches come from: the object store, or the job's own file. */
import type { ObjectStore, OpenObject } from "../object-store/object-store.ts";
import { OWN_PATH, openOwnFile } from "./own-file.ts";

export interface JobInput {
  /** `etag`: what it must be. */
  open(path: string, etag?: string): Promise<OpenObject>;
}

export function jobInput(store: ObjectStore, ownFile: string): JobInput {
  return { open: (path, etag) => (path === OWN_PATH ? openOwnFile(ownFile) : store.open(path, etag)) };
}

/** The input changed, or is gone, after it was enqueued. */
export class InputError extends Error {}
