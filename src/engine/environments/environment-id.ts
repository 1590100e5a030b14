/**
 * Computes one id from all that a Python environment depends on. These are the requirements and the files that they
 * name, the content of local requirements, `dependencies.sh`, and the interpreter. Environments with the same id are
 * the same; other content gets another id.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, readdir, readFile, readlink, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { REQUIREMENTS_BYTES_MAX } from "../../contracts/limits/projects.ts";
import { EnvironmentError } from "./environment-error.ts";
import type { InterpreterFacts } from "./interpreter.ts";
import { localPathOf, namedBy } from "./requirements.ts";

/** Of the user: it runs before the requirements are installed. */
export const DEPENDENCIES_SCRIPT = "dependencies.sh";
/** Beside the user's `requirements.txt`. */
export const OWN_REQUIREMENTS = ".quern/requirements.txt";
/**
 * The content of the directories that the requirements name, as it was when the project was new. User code may write
 * into the project's directory later.
 */
const CONTENTS = ".quern/requirement-contents.json";
/** Not part of what is installed, and created when it runs. */
const NOT_CONTENT = /^(__pycache__|\.git|\.quern|.*\.egg-info)$/;
/** The same for a directory outside the project, in which builds write. */
const NOT_CONTENT_OUTSIDE = /^(__pycache__|\.git|build|.*\.egg-info)$/;

export interface EnvironmentIdentity {
  id: string;
  /** The requirements name directories of the project. They are built in a copy, because a build writes into them. */
  hasLocalDirectories: boolean;
}

/** The user's requirements, and those that Quern adds to a project that it generated. */
export function requirementsOf(project: string): string[] {
  return [join(project, "requirements.txt"), join(project, OWN_REQUIREMENTS)].filter((file) =>
    existsSync(file),
  );
}

/** Whether a project needs nothing beside the interpreter and its packages. */
export function requiresNothing(project: string): boolean {
  return requirementsOf(project).length === 0 && !existsSync(join(project, DEPENDENCIES_SCRIPT));
}

/**
 * `root` is the directory of all environments. It is part of the id, because a moved or copied environment still runs
 * the programs of its old place.
 */
export async function environmentIdentity(
  project: string,
  root: string,
  facts: InterpreterFacts,
  env: NodeJS.ProcessEnv,
): Promise<EnvironmentIdentity> {
  const hash = createHash("sha256").update(`${JSON.stringify(facts)}\0${root}\0`);
  const paths = new Set<string>();
  const seen = new Set<string>();
  const add = async (file: string): Promise<void> => {
    if (seen.has(file) || !existsSync(file)) return;
    seen.add(file);
    const text = await requirementsText(file);
    hash.update(`${relative(project, file)}\0${text}\0`);
    const named = namedBy(text, env);
    for (const candidate of named.candidates) {
      const path = localPathOf(candidate, project);
      if (path !== undefined) paths.add(path);
    }
    for (const name of named.files) {
      const path = localPathOf(name, dirname(file));
      if (path !== undefined) await add(path);
    }
  };
  for (const file of requirementsOf(project)) await add(file);
  const hasLocalDirectories = await addPaths(hash, project, paths);
  const script = join(project, DEPENDENCIES_SCRIPT);
  if (existsSync(script)) hash.update(`${DEPENDENCIES_SCRIPT}\0`).update(await readFile(script));
  return { id: hash.digest("hex").slice(0, 24), hasLocalDirectories };
}

/** Reads files only: a device has no end, and opening a pipe blocks. */
async function requirementsText(file: string): Promise<string> {
  const info = await stat(file);
  if (!info.isFile()) throw new EnvironmentError(`${file}, which the requirements name, is not a file`);
  if (info.size > REQUIREMENTS_BYTES_MAX)
    throw new EnvironmentError(
      `${file} has ${info.size} bytes; requirements have at most ${REQUIREMENTS_BYTES_MAX}`,
    );
  return readFile(file, "utf8");
}

/** Adds the contents of the named paths. Returns whether they include directories of the project. */
async function addPaths(hash: Hash, project: string, paths: ReadonlySet<string>): Promise<boolean> {
  const deployed = new DeployedContents(project);
  for (const path of paths) {
    const info = await stat(path).catch(() => undefined);
    if (info === undefined) continue;
    const name = relative(project, path);
    const isOfProject = name !== ".." && !name.startsWith(`..${sep}`);
    if (info.isFile()) hash.update(`${name}\0${await fileDigest(path)}\0`);
    else if (info.isDirectory())
      hash.update(
        `${name}\0${isOfProject ? await deployed.digestOf(name) : await directoryDigest(path, NOT_CONTENT_OUTSIDE)}\0`,
      );
  }
  await deployed.save();
  return deployed.isUsed;
}

/** The contents of a project's directories when they were first needed, remembered across restarts of the server. */
class DeployedContents {
  private readonly project: string;
  private digests: Map<string, string> | undefined;
  private isChanged = false;

  constructor(project: string) {
    this.project = project;
  }

  get isUsed(): boolean {
    return this.digests !== undefined;
  }

  async digestOf(name: string): Promise<string> {
    this.digests ??= await this.read();
    const known = this.digests.get(name);
    if (known !== undefined) return known;
    this.isChanged = true;
    const digest = await directoryDigest(join(this.project, name), NOT_CONTENT);
    this.digests.set(name, digest);
    return digest;
  }

  async save(): Promise<void> {
    if (!this.isChanged) return;
    const file = join(this.project, CONTENTS);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(`${file}.new`, JSON.stringify([...(this.digests ?? [])]));
    await rename(`${file}.new`, file);
  }

  private async read(): Promise<Map<string, string>> {
    const text = await readFile(join(this.project, CONTENTS), "utf8").catch(() => "[]");
    try {
      return new Map(JSON.parse(text) as [string, string][]);
    } catch {
      // A power failure has emptied the file.
      return new Map();
    }
  }
}

async function directoryDigest(directory: string, skipped: RegExp): Promise<string> {
  const hash = createHash("sha256");
  const entries = await readdir(directory, { withFileTypes: true });
  for (const entry of entries.filter(({ name }) => !skipped.test(name)).sort(byName)) {
    const path = join(directory, entry.name);
    // A link to a directory may lead in a circle, so only its target's path counts.
    const isFile = entry.isFile() || (entry.isSymbolicLink() && (await isFileAt(path)));
    if (isFile) hash.update(`${entry.name}\0${await fileDigest(path)}\0`);
    else if (entry.isDirectory()) hash.update(`${entry.name}/\0${await directoryDigest(path, skipped)}\0`);
    else if (entry.isSymbolicLink()) hash.update(`${entry.name}@\0${await readlink(path)}\0`);
  }
  return hash.digest("hex");
}

function isFileAt(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

async function fileDigest(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
