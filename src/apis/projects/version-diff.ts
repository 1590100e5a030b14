/** Which files and lines of a project differ between two versions. What is too long to compare is only named. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TimeSlices } from "../../base/loop/turns.ts";
import { projectDirectory } from "../../contracts/data-layout.ts";
import type { FileDiff } from "../../contracts/http/session-operations.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import {
  DIFF_FILE_BYTES_MAX,
  DIFF_FILE_LINES_MAX,
  DIFF_FILES_MAX,
  DIFF_TEXT_MAX,
} from "../../contracts/limits/projects.ts";
import { lineDiff } from "./line-diff.ts";
import type { ListedFile } from "./project-lists.ts";

/** A version's project, with its files. */
export interface ComparedProject {
  projectId: string;
  files: readonly ListedFile[];
}

/**
 * `before`: undefined compares with nothing. The texts of all files together are bounded, too. `pass` is awaited after
 * each file.
 */
export async function diffProjects(
  dataDir: string,
  before: ComparedProject | undefined,
  after: ComparedProject,
  pass: () => Promise<void>,
): Promise<{ files: FileDiff[]; leftOut: number }> {
  const differing = differences(before?.files ?? [], after.files);
  const slices = new TimeSlices(SLICE_MS);
  const files: FileDiff[] = [];
  let left = DIFF_TEXT_MAX;
  for (const { path, old, now } of differing.slice(0, DIFF_FILES_MAX)) {
    const change = old === undefined ? "added" : now === undefined ? "removed" : "changed";
    const diff = linesOf(
      await textOf(dataDir, before?.projectId, old),
      await textOf(dataDir, after.projectId, now),
    );
    const text = diff === undefined || diff.text.length > left ? null : diff.text;
    left -= text?.length ?? 0;
    files.push({ path, change, added: diff?.added ?? null, removed: diff?.removed ?? null, text });
    await pass();
    if (slices.isOver) await slices.rest();
  }
  return { files, leftOut: differing.length - files.length };
}

interface Difference {
  path: string;
  old: ListedFile | undefined;
  now: ListedFile | undefined;
}

function differences(before: readonly ListedFile[], after: readonly ListedFile[]): Difference[] {
  const [old, now] = [before, after].map((files) => new Map(files.map((file) => [file.path, file])));
  return [...new Set([...old!.keys(), ...now!.keys()])]
    .sort()
    .map((path) => ({ path, old: old!.get(path), now: now!.get(path) }))
    .filter((one) => one.old?.sha256 !== one.now?.sha256);
}

/** Empty if there is no such file; undefined if it is too long, no text, or gone. */
async function textOf(
  dataDir: string,
  projectId: string | undefined,
  file: ListedFile | undefined,
): Promise<string | undefined> {
  if (projectId === undefined || file === undefined) return "";
  if (file.size > DIFF_FILE_BYTES_MAX) return undefined;
  const bytes = await readFile(join(projectDirectory(dataDir, projectId), file.path)).catch(() => undefined);
  // It may have grown since it was listed.
  if (bytes === undefined || bytes.length > DIFF_FILE_BYTES_MAX || bytes.includes(0)) return undefined;
  return bytes.toString();
}

function linesOf(before: string | undefined, after: string | undefined) {
  if (before === undefined || after === undefined) return undefined;
  const isLong = [before, after].some(
    (text) => text.split("\n", DIFF_FILE_LINES_MAX + 1).length > DIFF_FILE_LINES_MAX,
  );
  return isLong ? undefined : lineDiff(before, after);
}
