/**
 * Addresses of objects, `<scheme>://<bucket>/<key>`, and the errors of invalid ones
 * (docs/contract/submitting.md#schemes).
 */
import { normalize } from "node:path/posix";
import { quoted } from "../contracts/field-errors.ts";
import { PATH_BYTES_MAX } from "../contracts/limits/submissions.ts";
import { BUCKET_NAME, STORE_SCHEMES } from "../contracts/store-paths.ts";

/** The error of an entry of `store_paths`, with the cure; undefined if the entry is valid. */
export function pathProblem(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_BYTES_MAX)
    return `${quoted(path)} has ${bytes} bytes; a path has at most ${PATH_BYTES_MAX}`;
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(path)?.[1];
  if (scheme === undefined)
    return `${quoted(path)} is not a path of the shape <scheme>://<bucket>/<key>; a local one is file:///absolute/path`;
  if (!STORE_SCHEMES.some((legal) => legal === scheme))
    return `the scheme ${scheme.slice(0, 40)}:// is unknown; legal: ${STORE_SCHEMES.map((legal) => `${legal}://`).join(", ")}`;
  if (scheme !== "file") return bucketProblem(path, scheme);
  if (!path.startsWith("file:///")) return `${quoted(path)} must be absolute: file:///absolute/path`;
  return path.includes("\0")
    ? `${quoted(path.replaceAll("\0", "\\0"))} has a zero byte, which file names cannot have`
    : undefined;
}

function bucketProblem(path: string, scheme: string): string | undefined {
  const bucket = path.slice(scheme.length + "://".length).split("/", 1)[0]!;
  if (bucket === "") return `${quoted(path)} names no bucket; write ${scheme}://<bucket>/<key>`;
  if (BUCKET_NAME.test(bucket)) return undefined;
  return `${quoted(path)}: ${quoted(bucket)} is not the name of a bucket; write ${scheme}://<bucket>/<key>`;
}

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
