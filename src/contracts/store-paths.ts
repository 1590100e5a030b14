/**
 * The form of an address of objects: `<scheme>://<bucket>/<key>`, or `file:///path` (docs/contract/submitting.md#schemes).
 */
import { quoted } from "./field-errors.ts";
import { OUTPUT_FILE_BYTES_MAX, OUTPUT_KEY_BYTES_MAX, PATH_BYTES_MAX } from "./limits/submissions.ts";

/** Schemes of stores with buckets or containers. */
export const BUCKET_SCHEMES = ["s3", "gs", "az"] as const;
export const STORE_SCHEMES = [...BUCKET_SCHEMES, "file"] as const;
export type StoreScheme = (typeof STORE_SCHEMES)[number];

/** The characters that any of the stores allows in names of buckets and containers. */
const BUCKET = "\\$?[a-zA-Z0-9][a-zA-Z0-9._-]{1,221}";
export const BUCKET_NAME = new RegExp(`^${BUCKET}$`);

/** The same rule for the API's description. A file's path is absolute and has no null byte. */
export const STORE_PATH_PATTERN = `^(?:(?:${BUCKET_SCHEMES.join("|")})://${BUCKET}(?:/|$)|file:///[^\\u0000]*$)`;

/** The `store_path` of an output that the server keeps itself (docs/contract/output.md#in-the-server). */
export const IN_SERVER = "quern:";

/** The error of an output's `store_path`, with the cure; undefined if it is valid. */
export function outputPathProblem(path: string | undefined): string | undefined {
  if (path === undefined || path === IN_SERVER) return undefined;
  const problem = pathProblem(path) ?? lengthProblem(path);
  return problem === undefined ? undefined : `${problem}; "${IN_SERVER}" keeps the output in the server`;
}

/** The names of an output's files follow its path: a submission, not the end of the job, says that they are too long. */
function lengthProblem(path: string): string | undefined {
  const [, start, rest] = /^(file:\/\/|[a-z0-9]+:\/\/[^/]*\/?)(.*)$/s.exec(path)!;
  const most = start === "file://" ? OUTPUT_FILE_BYTES_MAX : OUTPUT_KEY_BYTES_MAX;
  const bytes = Buffer.byteLength(rest!);
  if (bytes <= most) return undefined;
  return `${quoted(path)} has ${bytes} bytes after ${start}; an output's path has at most ${most} there, because the names of its files follow`;
}

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
