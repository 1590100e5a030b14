/**
 * What a backup contains (docs/contract/operations.md#backup). It is a tar archive with these entries, in this order:
 *
 * - `backup.json`: the manifest
 * - `quern.db`: the database, at one moment
 * - directories and files of the data directory, as they were at that moment. What workers add to an open file may be
 *   longer, as after a crash
 * - `SHA256SUMS`: the checksums of all files, for `sha256sum -c`. It is the last one, so an archive without it is cut off
 */
import * as z from "zod";

export const FORMAT = 1;
export const MANIFEST = "backup.json";
export const DATABASE = "quern.db";
export const CHECKSUMS = "SHA256SUMS";

export const manifestSchema = z.object({
  format: z.literal(FORMAT),
  quern_version: z.string(),
  schema_version: z.int().positive(),
  created_time: z.string(),
  files: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
});

export type Manifest = z.infer<typeof manifestSchema>;

/** A file that is not a whole backup, or not one for here. The message says the cure. */
export class CannotRestore extends Error {
  override readonly name = "CannotRestore";
}

/** Throws CannotRestore. */
export function readManifest(text: string, schemaKnown: number): Manifest {
  const parsed = manifestSchema.safeParse(parsedJson(text));
  if (!parsed.success)
    throw new CannotRestore(`its ${MANIFEST} cannot be read; restore it with the Quern that made it`);
  const { schema_version: schema, quern_version: version } = parsed.data;
  if (schema > schemaKnown)
    throw new CannotRestore(
      `it has schema version ${schema}, and this Quern knows up to ${schemaKnown}; restore it with Quern ${version} or a later one`,
    );
  return parsed.data;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r" };
const UNESCAPES = new Map(Object.entries(ESCAPES).map(([character, escaped]) => [escaped, character]));

/** A line of the checksums. As sha256sum writes it: if the name needs escapes, the line begins with a backslash. */
export function checksumLine(path: string, sha256: string): string {
  const name = path.replace(/[\\\n\r]/g, (character) => ESCAPES[character]!);
  return `${name === path ? "" : "\\"}${sha256}  ${name}\n`;
}

/** The checksums by path. */
export function readChecksums(text: string): Map<string, string> {
  const lines = text.split("\n").filter((line) => line !== "");
  return new Map(lines.map((line) => (line.startsWith("\\") ? escapedSum(line.slice(1)) : plainSum(line))));
}

function plainSum(line: string): [path: string, sha256: string] {
  return [line.slice(66), line.slice(0, 64)];
}

function escapedSum(line: string): [path: string, sha256: string] {
  const [name, sha256] = plainSum(line);
  return [name.replace(/\\[\\nr]/g, (escaped) => UNESCAPES.get(escaped)!), sha256];
}
