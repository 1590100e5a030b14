/** Opens the source of a job's batches: the object store, or the job's own file. */
import { type DiskWait, whenDiskHasSpace } from "../../base/disk-full.ts";
import type { ObjectStore, OpenObject } from "../../object-store/object-store.ts";
import { ITEMS_PATH, openItemsFile } from "./items-file.ts";

export interface JobInput {
  /** `etag`: the version that the file must have. */
  open(path: string, etag?: string): Promise<OpenObject>;
}

/** `diskWait`: how to wait if no more files can be opened. Without it, that is an error. */
export function jobInput(store: ObjectStore, itemsPath: string, diskWait?: DiskWait): JobInput {
  const openOwn = () => openItemsFile(itemsPath);
  const patient = diskWait === undefined ? openOwn : () => whenDiskHasSpace(openOwn, diskWait);
  return { open: (path, etag) => (path === ITEMS_PATH ? patient() : store.open(path, etag)) };
}

/** The input changed, or is gone, after it was enqueued. */
export class InputError extends Error {}
