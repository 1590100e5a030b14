/** The port to where input lives: list by prefix in the order of key bytes, and read ranges. */

export interface ObjectInfo {
  /** The full address, as it is written everywhere: `file:///abs/path`. */
  path: string;
  bytes: number;
  /** Changes whenever the content may have changed. */
  etag: string;
}

export interface OpenObject extends ObjectInfo {
  /** Reads up to `length` bytes at `position` into `into` at `offset`; resolves to the number read, 0 at the end. */
  read(into: Buffer, offset: number, position: number, length: number): Promise<number>;
  close(): Promise<void>;
}

export interface ObjectStore {
  /** Every object whose address begins with `prefix`, in the order of key bytes, a page at a time. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  open(path: string): Promise<OpenObject>;
}
