/** The files of a project as they were deployed, as an archive for pods. */
import { Readable } from "node:stream";
import { Pack, WriteEntry } from "tar";
import { projectDirectory } from "../../contracts/data-layout.ts";
import { FILES } from "./archive-entry.ts";
import { deployedFiles, unlessGone } from "./project-files.ts";

/** Undefined if files are missing or changed since the deployment. */
export async function projectArchive(dataDir: string, projectId: string): Promise<Readable | undefined> {
  const cwd = projectDirectory(dataDir, projectId);
  const files = await deployedFiles(cwd, projectId).catch(unlessGone);
  if (files === undefined) return undefined;
  const pack = new Pack({
    ...{ cwd, gzip: true, portable: true, preservePaths: true },
    onWriteEntry: (entry) => {
      if (entry instanceof WriteEntry) entry.path = `${FILES}/${entry.path}`;
    },
  });
  for (const { path } of files) pack.add(path);
  pack.end();
  return Readable.from(pack);
}
