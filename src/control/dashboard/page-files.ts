/**
 * The files of the dashboard, read once at the start: a request can name nothing else, so that no path leaves the
 * directory.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative } from "node:path";

/** How a file's bytes are sent: as they are, or compressed. In the order of preference. */
const ENCODINGS = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

/** `app-5PJXEHFW.js`: the name changes with the content. */
const HASHED = /-[A-Z0-9]{8}\.\w+$/;

interface Body {
  bytes: Buffer<ArrayBuffer>;
  etag: string;
}

export interface PageFile {
  type: string;
  /** Whether its name changes with its content. */
  isHashed: boolean;
  plain: Body;
  /** By the name of the encoding, in the order of preference. */
  compressed: ReadonlyMap<string, Body>;
}

/** The files by their paths relative to `directory`; empty if there is no such directory. */
export function readPageFiles(directory: string): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  if (!existsSync(directory)) return files;
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));
  for (const path of paths) {
    if (ENCODINGS.some(([, end]) => path.endsWith(end))) continue;
    const compressed = new Map<string, Body>();
    for (const [encoding, end] of ENCODINGS)
      if (paths.includes(path + end))
        compressed.set(encoding, bodyOf(readFileSync(join(directory, path + end))));
    files.set(path, {
      type: TYPES[extname(path)] ?? "application/octet-stream",
      isHashed: HASHED.test(path),
      plain: bodyOf(readFileSync(join(directory, path))),
      compressed,
    });
  }
  return files;
}

export function bodyOf(bytes: Buffer<ArrayBuffer>): Body {
  const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
  return { bytes, etag: `"${hash}"` };
}

/** Chooses the smallest form that the client accepts (RFC 9110, section 12.5.3). Pure. */
export function chosenForm(
  file: PageFile,
  accepted: string | undefined,
): { encoding: string | undefined; body: Body } {
  const refused = new Set<string>();
  const named = new Set<string>();
  for (const item of (accepted ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    if (parameters.some((part) => /^q=0(\.0*)?$/.test(part))) refused.add(name);
    else named.add(name);
  }
  for (const [encoding, body] of file.compressed)
    if (named.has(encoding) || (named.has("*") && !refused.has(encoding))) return { encoding, body };
  return { encoding: undefined, body: file.plain };
}
