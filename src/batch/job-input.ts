/** Where a job's batches come from: the object store, or the job's own file. */
import { type RoomWait, whenThereIsRoom } from "../base/disk-full.ts";
import type { ObjectStore, OpenObject } from "../object-store/object-store.ts";
import { OWN_PATH, openOwnFile } from "./own-file.ts";

export interface JobInput {
  /** `etag`: what it must be. */
  open(path: string, etag?: string): Promise<OpenObject>;
}

/** `room`: how to wait where no more files may be opened; without it that is an error. */
export function jobInput(store: ObjectStore, ownFile: string, room?: RoomWait): JobInput {
  const openOwn = () => openOwnFile(ownFile);
  const patient = room === undefined ? openOwn : () => whenThereIsRoom(openOwn, room);
  return { open: (path, etag) => (path === OWN_PATH ? patient() : store.open(path, etag)) };
}

/** The input changed, or is gone, after it was enqueued. */
export class InputError extends Error {}
