/**
 * Exports a version of an API as an archive that can be deployed again: its configuration, and its files as they were
 * deployed. The same content must get the same id, so the exported configuration is parsed again before it is sent.
 */
import { Readable } from "node:stream";
import { Header, Pack, ReadEntry, WriteEntry } from "tar";
import { stringifyExact } from "../base/json/exact.ts";
import { writeYaml } from "../config/write-yaml.ts";
import { projectDirectory } from "../contracts/data-layout.ts";
import { ServiceError } from "../contracts/errors.ts";
import { readLongConfig } from "./config/read-config.ts";
import { CONFIG, FILES } from "./projects/archive-entry.ts";
import { deployedFiles } from "./projects/project-files.ts";
import { type AnyVersion, identityOf } from "./records/api-rows.ts";
import { submittedEntry } from "./records/submitted-entry.ts";

/**
 * Throws `wrong_state` if the files are missing or changed since the deployment. `sender`: a key, or a client's address;
 * senders of long configurations take turns.
 */
export async function exportVersion(dataDir: string, version: AnyVersion, sender: string): Promise<Readable> {
  const { name, api_id, project_id } = version;
  const config = Buffer.from(await configOf(version, sender));
  if (project_id === "") return archiveOf(config, ".", []);
  const directory = projectDirectory(dataDir, project_id);
  const files = await deployedFiles(directory, project_id);
  const paths = files?.map(({ path }) => path);
  if (paths !== undefined) return archiveOf(config, directory, paths);
  const message = `some files of ${name}, version ${api_id}, were changed or removed on the server after the deployment; deploy again from the original files`;
  throw new ServiceError("wrong_state", message);
}

function archiveOf(config: Buffer, cwd: string, files: readonly string[]): Readable {
  const pack = new Pack({
    cwd,
    // All paths are relative. `a:b` is a file name here, not a file on a drive.
    ...{ gzip: true, portable: true, preservePaths: true },
    onWriteEntry: (entry) => {
      entry.path = entry instanceof WriteEntry ? `${FILES}/${entry.path}` : CONFIG;
    },
  });
  const entry = new ReadEntry(new Header({ path: CONFIG, type: "File", size: config.length, mode: 0o644 }));
  entry.end(config);
  pack.add(entry);
  for (const file of files) pack.add(file);
  pack.end();
  return Readable.from(pack);
}

/** The entry as it was submitted, in YAML. If only JSON gives the same id, it is JSON, which is also YAML. */
async function configOf(version: AnyVersion, sender: string): Promise<string> {
  const entry = [submittedEntry(version)];
  const yaml = writeYaml(entry);
  for (const text of [yaml, `${stringifyExact(entry)}\n`])
    if ((await idOf(text, version.project_id, sender)) === version.api_id) return text;
  return `# This release of Quern gives it another id than ${version.api_id}: it has settings that the release that deployed it did not have.\n${yaml}`;
}

async function idOf(text: string, projectId: string, sender: string): Promise<string | undefined> {
  const { apis, errors } = await readLongConfig(Buffer.from(text).toString(), CONFIG, sender);
  const [api] = apis;
  if (api === undefined || errors.length > 0) return undefined;
  return identityOf(api.config, api.configText, projectId).api_id;
}
