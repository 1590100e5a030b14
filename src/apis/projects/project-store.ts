/**
 * Projects as they were deployed. Each content is unpacked once, to `<data>/projects/<project_id>`. All APIs and jobs
 * with the same files share it.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { removeTree } from "../../base/files/remove-tree.ts";
import { sync } from "../../base/files/sync.ts";
import { projectsDirectory } from "../../contracts/data-layout.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { CONFIG_FILE_BYTES_MAX } from "../../contracts/limits/configuration.ts";
import { CONFIG, FILES } from "./archive-entry.ts";
import { contentId, filesOf, makeDurable, type ProjectFile, repair } from "./project-files.ts";
import { unpackArchive } from "./unpack-archive.ts";

export interface UnpackedProject {
  project_id: string;
  directory: string;
  /** As they were deployed. */
  files: readonly ProjectFile[];
  /** The configuration file's text. */
  configText: string;
}

/** The prefix of directories that the server removes when it starts. */
export const INCOMING = ".incoming-";

/** Removes the incomplete uploads of a server that was killed. */
export async function removeCutOffUploads(dataDir: string): Promise<void> {
  const root = projectsDirectory(dataDir);
  const names = await readdir(root).catch(() => [] as string[]);
  for (const name of names.filter((entry) => entry.startsWith(INCOMING))) {
    await removeTree(join(root, name));
  }
}

/** Unpacks an archive (`config.yaml` and the directory `project`). Throws `invalid_project` if it is not one. */
export async function unpackProject(
  dataDir: string,
  { archive, onReceived }: { archive: Readable; onReceived: () => void },
): Promise<UnpackedProject> {
  const root = projectsDirectory(dataDir);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const temporary = await mkdtemp(join(root, INCOMING));
  try {
    await unpack(archive, temporary);
    onReceived();
    await assertShort(join(temporary, CONFIG));
    const configText = await readFile(join(temporary, CONFIG), "utf8");
    await mkdir(join(temporary, FILES), { recursive: true });
    const files = await filesOf(join(temporary, FILES));
    const project_id = contentId(files);
    const directory = join(root, project_id);
    await place(join(temporary, FILES), directory, files);
    return { project_id, directory, files, configText };
  } finally {
    await removeTree(temporary);
  }
}

async function assertShort(file: string): Promise<void> {
  const { size } = await stat(file);
  if (size <= CONFIG_FILE_BYTES_MAX) return;
  const message = `the configuration has ${size} bytes, at most ${CONFIG_FILE_BYTES_MAX} are allowed: put its data into files of the project`;
  throw new ServiceError("invalid_configuration", message);
}

/**
 * Puts a new project in its place. An existing one is reused after it was verified: a power failure or a person may
 * have changed its files.
 */
async function place(unpacked: string, directory: string, files: readonly ProjectFile[]): Promise<void> {
  if (!existsSync(directory)) {
    await makeDurable(unpacked, files);
    const isRenamed = await rename(unpacked, directory).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        // Another deployment of the same content finished first.
        if (error.code === "ENOTEMPTY" || error.code === "EEXIST") return false;
        throw error;
      },
    );
    if (isRenamed) return sync(join(directory, ".."));
  }
  await repair(directory, unpacked, files);
}

async function unpack(archive: Readable, into: string): Promise<void> {
  await unpackArchive(archive, into);
  if (!existsSync(join(into, CONFIG)))
    throw new ServiceError("invalid_project", `the project's archive has no ${CONFIG}`);
}
