/** Opens the source of a job's batches: the object store, or the job's own items or file. */
import { type DiskWait, whenDiskWorks } from "../../base/disk-full.ts";
import type { Statements } from "../../database/database.ts";
import type { ObjectStore, OpenObject } from "../../object-store/object-store.ts";
import { ITEMS_ETAG, ITEMS_PATH, type ItemsStore } from "./items-file.ts";
import { inputIfKept } from "./stored-input.ts";

export interface JobInput {
  /** `etag`: the version that the file must have. */
  open(path: string, etag?: string): Promise<OpenObject>;
}

export interface JobInputSource {
  db: Statements;
  jobId: string;
  store: ObjectStore;
  items: ItemsStore;
}

/** `diskWait`: how to wait if no more files can be opened. Without it, that is an error. */
export function jobInput(source: JobInputSource, diskWait?: DiskWait): JobInput {
  const openOwn = () => openOwnItems(source);
  const patient = diskWait === undefined ? openOwn : () => whenDiskWorks(openOwn, diskWait);
  return { open: (path, etag) => (path === ITEMS_PATH ? patient() : source.store.open(path, etag)) };
}

async function openOwnItems({ db, jobId, store, items }: JobInputSource): Promise<OpenObject> {
  const stored = await inputIfKept(db, jobId);
  const lines = stored?.kind === "items" ? stored.lines : undefined;
  return lines === undefined ? items.open(jobId, store) : inMemory(Buffer.from(lines));
}

function inMemory(content: Buffer): OpenObject {
  return {
    path: ITEMS_PATH,
    etag: ITEMS_ETAG,
    bytes: content.length,
    read: async (into, offset, position, length) => content.copy(into, offset, position, position + length),
    close: async () => {},
  };
}

/** The input changed, or is gone, after it was enqueued. */
export class InputError extends Error {}
