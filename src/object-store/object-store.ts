/** The port to the stores of input: lists by prefix in the order of key bytes, and reads ranges. */

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

/**
 * Errors that users can see are ServiceErrors: `store_unreachable` if a later try may succeed, `store_forbidden`,
 * `bucket_not_found`, `path_not_allowed`.
 */
export interface ObjectStore {
  /** How many prefixes like this one are worth listing at the same time. */
  parallelListings(prefix: string): number;
  /** Every object whose address begins with `prefix`, in the order of key bytes, page by page. No page is empty. */
  list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]>;
  /** `etag`: the version that the object must have. It is checked here, or when the first bytes are read. */
  open(path: string, etag?: string): Promise<OpenObject>;
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
