/** The port to the stores of input and output: lists by prefix in the order of key bytes, reads ranges, writes objects. */

export interface ListedObject {
  /** The full address, the same everywhere: `file:///abs/path`. Like the key of a bucket, it is not percent-encoded. */
  path: string;
  /** Undefined if sizes were not requested and would have cost something. */
  bytes: number | undefined;
}

export interface OpenObject {
  path: string;
  /** Infinity if the store was not asked yet. */
  bytes: number;
  /** Changes whenever the content may have changed. */
  etag: string;
  /**
   * Reads up to `length` bytes at `position` into `into` at `offset`; resolves to the number read, 0 at the end. After
   * an error the same read may be retried. Throws ObjectChanged if the object has changed since it was opened.
   */
  read(into: Buffer, offset: number, position: number, length: number): Promise<number>;
  close(): Promise<void>;
}

export interface ListOptions {
  sizes: boolean;
  /** Only addresses after this one. */
  after?: string | undefined;
  /** Aborted when nobody wants the rest. A listing that finds nothing for long ends early then, by an error. */
  signal?: AbortSignal | undefined;
}

/** Write only if there is no object of this name, or if its content still has this etag. */
export type WriteCondition = "absent" | { etag: string };

/** The version that was written: what `open()` has as its etag, and what a later condition may name. */
export interface Written {
  etag: string;
}

/**
 * A large object on its way into a store. Readers see nothing of it before `complete()`. One call at a time, and one
 * upload to a name at a time: two may end each other by UploadLost. In memory are at most two pieces of
 * STORE_PIECE_BYTES: one is sent while the other fills up.
 */
export interface Upload {
  /**
   * Takes the bytes of the chunk, and resolves when the next chunk may be written. An error may be that of an earlier
   * chunk. After an error the same call may be retried, with the same chunk.
   */
  write(chunk: Uint8Array): Promise<void>;
  /**
   * Makes the object visible as a whole, in place of an older one; it is durable then. After an error the same call may
   * be retried, even if the object is already complete. Throws UploadLost if it cannot be completed any more.
   */
  complete(): Promise<Written>;
  /** Ends the upload without an object, and removes what was sent. Does nothing after `complete()`. */
  abort(): Promise<void>;
}

/**
 * Errors that users can see are ServiceErrors: `store_unreachable` if a later try may succeed, `store_forbidden`,
 * `bucket_not_found`, `path_not_allowed`. If the disk of a directory is full, the system's own error is thrown
 * (base/disk-full.ts).
 */
export interface ObjectStore {
  /** How many prefixes like this one are worth listing at the same time. */
  parallelListings(prefix: string): number;
  /**
   * Every object whose address begins with `prefix`, in the order of key bytes, page by page. An empty page says that
   * the store is responding, and has found nothing yet.
   */
  list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]>;
  /** `etag`: the version that the object must have. It is checked here, or when the first bytes are read. */
  open(path: string, etag?: string): Promise<OpenObject>;
  /**
   * Writes a whole object of at most STORE_PUT_BYTES_MAX, in place of an older one; it is durable then. Readers see the
   * old object or the new one. Throws ConditionFailed, and writes nothing, if the condition does not hold.
   *
   * A store's client repeats a request whose response was lost. So ConditionFailed may also mean that this very call has
   * written the object: read it and compare.
   */
  put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written>;
  /** Begins a large object. It appears under its name when the upload is complete. */
  create(path: string): Promise<Upload>;
  /** Removes the object, durably. No error if there is none. */
  remove(path: string): Promise<void>;
  /**
   * Whether writes below this address are known to have conditions, without a trial. Throws if nothing may be written
   * there. It leaves nothing behind. A store without this method shows it only by a trial.
   */
  knowsConditions?(prefix: string): Promise<boolean>;
  /**
   * Removes what uploads of killed processes have left under names that begin with `prefix`; none may be running. Google
   * and Azure need no help: they remove it after a week. `signal`: aborted when nobody waits for it any more.
   */
  removeUnfinished(prefix: string, signal?: AbortSignal): Promise<void>;
}

/** The object has changed since its etag was taken. */
export class ObjectChanged extends Error {
  constructor(path: string) {
    super(`${path} was changed after it was enqueued`);
  }
}

/** There is no such object. */
export class ObjectMissing extends Error {
  constructor(path: string, cause?: unknown) {
    super(`there is no ${path}`, { cause });
  }
}

/** The object exists, or has another etag, so that it was not written. */
export class ConditionFailed extends Error {
  constructor(path: string, condition: WriteCondition | undefined, cause?: unknown) {
    const why = condition === "absent" ? "already exists" : "was changed or removed meanwhile";
    super(`${path} was not written: it ${why}`, { cause });
  }
}

/** The store has lost pieces of an upload. Only a new upload can write the object. */
export class UploadLost extends Error {
  constructor(path: string, why: string) {
    super(`the upload of ${path} cannot be continued: ${why}`);
  }
}
