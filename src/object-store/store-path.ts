/** Addresses of objects: `<scheme>://<bucket>/<key>`, and what is wrong with one that is none. */
import { normalize } from "node:path/posix";

const SCHEMES = ["s3", "gs", "az", "file"];

/** What is wrong with an entry of `store_paths`, with the cure; undefined when nothing is. */
export function pathProblem(path: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(path)?.[1];
  if (scheme === undefined)
    return `"${path}" is not a path of the shape <scheme>://<bucket>/<key>; a local one is file:///absolute/path`;
  if (!SCHEMES.includes(scheme))
    return `the scheme ${scheme}:// is unknown; legal: ${SCHEMES.map((legal) => `${legal}://`).join(", ")}`;
  if (scheme !== "file") return `the scheme ${scheme}:// is not supported yet; use file://`;
  if (!path.startsWith("file:///")) return `"${path}" must be absolute: file:///absolute/path`;
  return path.includes("\0")
    ? `"${path.replaceAll("\0", "\\0")}" has a zero byte, which no file name has`
    : undefined;
}

/** A legal path in the one form that all comparisons see: `//`, `.` and `..` of a file's path resolved. */
export function normalizedPath(path: string): string {
  return path.startsWith("file://") ? fileAddress(normalize(localPath(path))) : path;
}

/** The path on this machine that a `file://` address names. Nothing is percent-encoded in one. */
export function localPath(address: string): string {
  return address.slice("file://".length);
}

export function fileAddress(path: string): string {
  return `file://${path}`;
}
