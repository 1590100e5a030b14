/** The port to where input lives: list by prefix in the order of key bytes, and read ranges. */

export interface ListedObject {
  /** The full address, as it is written everywhere: `file:///abs/path`, not percent-encoded, like the key of a bucket. */
  path: string;
  /** Undefined where the listing was not asked for sizes, and they would have cost something. */
  bytes: number | undefined;
}

export interface OpenObject {
  path: string;
  /** Infinity where nobody has asked the store yet. */
  bytes: number;
  /** Changes whenever the content may have changed. */
  etag: string;
  /**
   * Reads up to `length` bytes at `position` into `into` at `offset`; resolves to the number read, 0 at the end. After an error
   * the same read may be tried again. Throws ObjectChanged when this is no longer what was opened.
   */
  read(into: Buffer, offset: number, position: number, length: number): Promise<number>;
  close(): Promise<void>;
}

export interface ListOptions {
  sizes: boolean;
  /** Only addresses behind this one. */
  after?: string | undefined;
}

/**
 * Errors that a user can meet are ServiceErrors: `store_unreachable` where a later try may go well, `store_forbidden`,
 * `bucket_not_found`, `path_not_allowed`.
 */
export interface ObjectStore {
  /** How many prefixes like this one are worth listing at the same time. */
  parallelListings(prefix: string): number;
  /** Every object whose address begins with `prefix`, in the order of key bytes, page by page. No page is empty. */
  list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]>;
  /** `etag`: what it must be; it is looked at here, or when the first bytes are read. */
  open(path: string, etag?: string): Promise<OpenObject>;
}

/** The object is not what it was when its etag was taken. */
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
