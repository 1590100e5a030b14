/** The port to where input lives: list by prefix in the order of key bytes, and read ranges. */

export interface ListedObject {
  /** The full address, as it is written everywhere: `file:///abs/path`, not percent-encoded, like the key of a bucket. */
  path: string;
  /** Undefined where the listing was not asked for sizes, and they would have cost something. */
  bytes: number | undefined;
}

export interface OpenObject {
  path: string;
  bytes: number;
  /** Changes whenever the content may have changed. */
  etag: string;
  /** Reads up to `length` bytes at `position` into `into` at `offset`; resolves to the number read, 0 at the end. */
  read(into: Buffer, offset: number, position: number, length: number): Promise<number>;
  close(): Promise<void>;
}

export interface ObjectStore {
  /** Every object whose address begins with `prefix`, in the order of key bytes, page by page. No page is empty. */
  list(prefix: string, options: { sizes: boolean }): AsyncGenerator<ListedObject[]>;
  open(path: string): Promise<OpenObject>;
}
