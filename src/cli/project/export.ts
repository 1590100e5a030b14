/** `quern export api`: writes a deployed version to a directory. Deploying the directory gives that version again. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { UnpackSync } from "tar";
import { CONFIG_FILE_BYTES_MAX } from "../../contracts/limits/configuration.ts";
import { PROJECT_BYTES_LIMIT, PROJECT_ENTRIES_MAX } from "../../contracts/limits/projects.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { projectFiles } from "./pack-project.ts";

const CONFIG = "quern.yaml";
/** The name of the configuration if the project has another file called `quern.yaml`. */
const OTHER_CONFIG = "quern.exported.yaml";
/** The largest archive that can be deployed. An untrusted server may send more. */
const ARCHIVE_BYTES_MAX = PROJECT_BYTES_LIMIT + CONFIG_FILE_BYTES_MAX;
/** Files and directories of such an archive, with the configuration and the directory of the project. */
const ARCHIVE_ENTRIES_MAX = PROJECT_ENTRIES_MAX + 2;
const IGNORE = ".quernignore";
const LINKS: ReadonlySet<string> = new Set(["SymbolicLink", "Link"]);

/** `[id]` is optional, and precedes the directory. */
export async function exportApi(
  context: CliContext,
  api: string,
  idOrDirectory: string,
  lastDirectory: string | undefined,
): Promise<number> {
  const directory = lastDirectory ?? idOrDirectory;
  const id = lastDirectory === undefined ? undefined : idOrDirectory;
  if (existsSync(directory) && readdirSync(directory).length > 0)
    throw new CliError(`${directory} is not empty; name a new directory`, EXIT.conflict);
  const archive = await context.client.request(`/-/apis/${encodeURIComponent(api)}/export`, {
    query: { api_id: id },
  });
  const config = await unpackTo(directory, archive);
  const path = join(directory, config);
  await context.out(
    context.output === "json" ? `${JSON.stringify({ directory, config: path })}\n` : `wrote ${path}\n`,
  );
  context.err(`\nquern deploy ${config === CONFIG ? directory : path}  (deploy it again)\n`);
  return EXIT.success;
}

/** Returns the name of the configuration file. */
async function unpackTo(directory: string, archive: IncomingMessage): Promise<string> {
  // The files may contain secrets of `predictor.env` and `.env`, so only the user may read them.
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const work = mkdtempSync(join(directory, ".exporting-"));
  try {
    await unpack(archive, work);
    const project = join(work, "project");
    const names = existsSync(project) ? readdirSync(project) : [];
    const files = filesBelow(project);
    for (const name of names) renameSync(join(project, name), join(directory, name));
    const config = names.includes(CONFIG) ? OTHER_CONFIG : CONFIG;
    renameSync(join(work, "config.yaml"), join(directory, config));
    rmSync(work, { recursive: true });
    await bringBack(directory, config, files);
    return config;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function unpack(archive: IncomingMessage, cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new CliError(`the archive was cut off (${error.message}); try again`, EXIT.failed));
    let [bytes, entries] = [0, 0];
    const filter = (path: string, entry: { mode?: number | undefined; size: number; type?: string }) => {
      // Removes the setuid, setgid and sticky bits, so that no file runs as the user who exports it.
      entry.mode = (entry.mode ?? 0o644) & 0o777;
      bytes += entry.size;
      if (bytes > ARCHIVE_BYTES_MAX)
        archive.destroy(new Error(`the unpacked archive has more than ${ARCHIVE_BYTES_MAX} bytes`));
      entries++;
      if (entries > ARCHIVE_ENTRIES_MAX)
        archive.destroy(new Error(`the archive has more than ${ARCHIVE_ENTRIES_MAX} files and directories`));
      // No server stores links. tar judges them by where they are unpacked, and they are moved after that.
      const isLink = LINKS.has(entry.type ?? "");
      if (isLink) archive.destroy(new Error(`${path} is a link`));
      return bytes <= ARCHIVE_BYTES_MAX && entries <= ARCHIVE_ENTRIES_MAX && !isLink;
    };
    archive.on("error", failed);
    // Writes each file before it returns, so nothing is written after a failure, when the directory is removed.
    const unpacker = new UnpackSync({ cwd, strict: true, filter });
    archive.pipe(unpacker.on("close", resolve).on("error", failed));
  });
}

function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

/** Adds a `.quernignore` if this version has files that a deployment leaves out by default. */
async function bringBack(directory: string, config: string, files: readonly string[]): Promise<void> {
  const isWhole = async () => (await projectFiles(directory, config)).join("\n") === files.join("\n");
  if (await isWhole()) return;
  const rules = ["# Everything here was deployed, except these two files.", "!*", `/${config}`, `/${IGNORE}`];
  if (!files.includes(IGNORE)) writeFileSync(join(directory, IGNORE), `${rules.join("\n")}\n`);
  if (await isWhole()) return;
  const message = `${directory} has all files, but its ${IGNORE} excludes some of them; a deployment without them gets another id`;
  throw new CliError(message, EXIT.failed);
}
