/** Addresses of objects, `<scheme>://<bucket>/<key>`: their parts and their common form. */
import { normalize } from "node:path/posix";

/**
 * A legal path in the form that all comparisons use. In a file's path, `//`, `.` and `..` are resolved. A bucket alone
 * gets a `/` and means all that is in it. Keys of buckets are unchanged.
 */
export function normalizedPath(path: string): string {
  if (path.startsWith("file://")) return fileAddress(normalize(localPath(path)));
  return /^[^/]+:\/\/[^/]+$/.test(path) ? `${path}/` : path;
}

/** Bucket and key of an object's address, or of a prefix. */
export function bucketAndKey(address: string): { bucket: string; key: string } {
  const [, bucket, key] = /^[^/]+:\/\/([^/]+)\/?(.*)$/s.exec(address)!;
  return { bucket: bucket!, key: key! };
}

/** The path on this machine that a `file://` address names. Addresses are not percent-encoded. */
export function localPath(address: string): string {
  return address.slice("file://".length);
}

export function fileAddress(path: string): string {
  return `file://${path}`;
}
