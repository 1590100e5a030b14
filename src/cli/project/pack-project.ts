/**
 * Packs a project's files into an archive: all files beside the configuration, except those that are left out
 * (docs/contract/configuration.md#project-files) and those in `.quernignore`. That file has gitignore syntax, and
 * `!pattern` includes files again. If a file of Quern's is missing, Cortex's file of the same purpose is used.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import ignore from "ignore";
import { Pack } from "tar";
import { CONFIG_FILE_BYTES_MAX } from "../../contracts/limits/configuration.ts";
import { PROJECT_BYTES_LIMIT } from "../../contracts/limits/projects.ts";
import { CliError, EXIT } from "../server/context.ts";
import { behindLink, type Walked } from "./project-links.ts";

const LEFT_OUT = [".*", "!.env", "__pycache__", "*.pyc", "*.pyo", "*.pyd", "node_modules"];
/** A project directory that is a virtual environment itself (`python -m venv .`) is still a project. */
const VENV_PARTS = ["/bin/", "/include/", "/lib/", "/lib64", "/share/", "/pyvenv.cfg"];

/** Enough for thousands of rules. */
const IGNORE_BYTES_MAX = 1024 * 1024;

/** Quern's files, with the names that Cortex projects use. */
const FORMER_NAMES = { "quern.yaml": "cortex.yaml", ".quernignore": ".cortexignore" } as const;

export interface PackedProject {
  archive: ReadableStream<Uint8Array>;
  /** The path of the configuration as the user named it. */
  configFile: string;
  /** Messages about Cortex files that are used instead of Quern's. */
  notices: string[];
}

/**
 * Describes the files of a deployment as a text that changes if a file does: one line each, with its name before a tab.
 */
export async function projectState(path: string): Promise<string> {
  const { directory, config } = locateProject(path);
  const files = [config, ...(await projectFiles(directory, config))];
  return files
    .map((file) => {
      // An editor may be about to restore the file.
      const info = statSync(join(directory, file), { throwIfNoEntry: false });
      return `${file}\t${info?.size} ${info?.mtimeMs} ${info?.ino}`;
    })
    .join("\n");
}

/**
 * The configuration of a directory: `quern.yaml`, or else `cortex.yaml`, or else `app.yaml`, which is a declarative
 * application.
 */
export function configurationOf(path: string): string {
  const isDirectory = existsSync(path) && statSync(path).isDirectory();
  const file = isDirectory ? join(path, "quern.yaml") : path;
  if (basename(file) !== "quern.yaml" || existsSync(file)) return file;
  const others = [FORMER_NAMES["quern.yaml"], "app.yaml"].map((name) => join(dirname(file), name));
  return others.find((other) => existsSync(other)) ?? file;
}

/** The file that lists what to leave out. */
function ignoreFileOf(directory: string): string {
  const name = ".quernignore";
  const former = FORMER_NAMES[name];
  return !existsSync(join(directory, name)) && existsSync(join(directory, former)) ? former : name;
}

/** Reads regular files only: in a project that somebody else wrote, another kind of file may be endless. */
function smallFile(file: string, name: string, most: number): string | undefined {
  const info = statSync(file, { throwIfNoEntry: false });
  if (info === undefined) return undefined;
  if (info.isFile() && info.size <= most) return readFileSync(file, "utf8");
  throw new CliError(`${name} must be a file of at most ${most} bytes`, EXIT.failed);
}

function ownRules(directory: string): string {
  const name = ignoreFileOf(directory);
  return smallFile(join(directory, name), name, IGNORE_BYTES_MAX) ?? "";
}

/** The text of the configuration that `configurationOf` names; undefined without one. */
export function configurationText(file: string): string | undefined {
  return smallFile(file, file, CONFIG_FILE_BYTES_MAX);
}

/** `path` is the path that the user named. */
function noticesOf(path: string, { configFile, directory }: LocatedProject): string[] {
  const isNamed = path === configFile;
  const taken = [ignoreFileOf(directory), ...(isNamed ? [] : [basename(configFile)])];
  return Object.entries(FORMER_NAMES)
    .filter(([, former]) => taken.includes(former))
    .map(([name, former]) => `there is no ${name}: ${former} is used instead\n`);
}

interface LocatedProject {
  configFile: string;
  directory: string;
  config: string;
}

/** `path` is the configuration file, or a directory that contains one. */
function locateProject(path: string): LocatedProject {
  const configFile = configurationOf(path);
  if (!existsSync(configFile))
    throw new CliError(
      `${configFile} does not exist; name a configuration file, or write a quern.yaml here`,
      EXIT.usage,
    );
  const directory = dirname(resolve(configFile));
  if (directory === "/" || directory === homedir()) {
    throw new CliError(
      `${directory} cannot be deployed, because all its files would be part of the project; put the configuration into its own directory`,
      EXIT.usage,
    );
  }
  return { configFile, directory, config: basename(configFile) };
}

/** `path` is the configuration file, or a directory that contains one. */
export async function packProject(path: string): Promise<PackedProject> {
  const located = locateProject(path);
  const { configFile, directory, config } = located;
  const files = await projectFiles(directory, config);
  assertSize(directory, files);
  // If `.quernignore` includes the configuration, it is packed a second time, as a file of the project. The order of
  // the entries varies.
  let hasConfig = false;
  const rename = (entry: { path: string }) => {
    const isFirst = entry.path === config && !hasConfig;
    hasConfig ||= isFirst;
    entry.path = isFirst ? "config.yaml" : `project/${entry.path}`;
  };
  // Otherwise a second name of a file would be packed as a link to the first, which the server refuses.
  const linkCache = new NoLinks();
  const options = {
    cwd: directory,
    gzip: true,
    portable: true,
    follow: true,
    // All paths are relative. `a:b` is a file name here, not a file on a drive.
    preservePaths: true,
    onWriteEntry: rename,
    linkCache,
  };
  // `create` of the package would treat a name that begins with @ as an archive to read.
  const pack = new Pack(options);
  for (const file of [config, ...files]) pack.add(file);
  pack.end();
  const packed = Readable.from(pack);
  // The error may occur before anybody reads.
  pack.on("error", (error) =>
    packed.destroy(
      new CliError(`the project changed while it was read: ${(error as Error).message}`, EXIT.failed),
    ),
  );
  return {
    archive: Readable.toWeb(packed) as ReadableStream<Uint8Array>,
    configFile,
    notices: noticesOf(path, located),
  };
}

/** The packer's table of files that it has packed under another name. It stays empty. */
class NoLinks extends Map<`${number}:${number}`, string> {
  override set(): this {
    return this;
  }
}

/** The files of a directory that are deployed, sorted. */
export async function projectFiles(directory: string, config: string): Promise<string[]> {
  const own = ownRules(directory);
  const isVenv = existsSync(join(directory, "pyvenv.cfg"));
  const rules = ignore()
    .add(LEFT_OUT)
    .add(isVenv ? VENV_PARTS : [])
    .add(`/${config}`)
    .add(own);
  // A virtual environment is recognized only inside its directory. `.quernignore` can still include it.
  const isLeftOut = (venv: string) => ignore().add(`/${venv}/`).add(own).ignores(`${venv}/`);
  const files: string[] = [];
  const root = await realpath(directory);
  const walk = async (at: Walked): Promise<void> => {
    const entries = await readdir(at.real, { withFileTypes: true });
    const isInnerVenv = at.path !== "" && entries.some((entry) => entry.name === "pyvenv.cfg");
    if (isInnerVenv && isLeftOut(at.path)) return;
    const above = [...at.above, at.real];
    for (const entry of entries) {
      const path = at.path === "" ? entry.name : `${at.path}/${entry.name}`;
      if (rules.ignores(entry.isDirectory() ? `${path}/` : path)) continue;
      const behind = entry.isSymbolicLink() ? await behindLink(root, path, at) : undefined;
      const what = behind?.info ?? entry;
      const real = behind?.real ?? join(at.real, entry.name);
      if (!what.isDirectory()) {
        if (what.isFile()) files.push(path);
      } else if (!rules.ignores(`${path}/`)) await walk({ path, real, above });
    }
  };
  await walk({ path: "", real: root, above: [] });
  return files.sort();
}

function assertSize(directory: string, files: readonly string[]): void {
  // One may be gone by now: an editor writes another file, which takes the place of the first.
  const bytesOf = (file: string) => statSync(join(directory, file), { throwIfNoEntry: false })?.size ?? 0;
  const sizes = files.map((file) => ({ file, bytes: bytesOf(file) }));
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total < PROJECT_BYTES_LIMIT) return;
  const largest = sizes
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(({ file, bytes }) => `${file} (${bytes} bytes)`);
  throw new CliError(
    `the project has ${total} bytes, the limit is ${PROJECT_BYTES_LIMIT}; the largest files: ${largest.join(", ")}; list what it does not need in .quernignore`,
    EXIT.failed,
  );
}
