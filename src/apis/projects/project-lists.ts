/**
 * Lists the files of deployed projects, with their sizes and hashes. A project never changes, so that its files are read
 * once: one project at a time, because their bytes are hashed between other work of the event loop.
 */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { projectDirectory } from "../../contracts/data-layout.ts";
import { LISTED_FILES_KEPT_MAX, LISTED_PROJECTS_KEPT_MAX } from "../../contracts/limits/projects.ts";
import type { Trees } from "../../state/trees.ts";
import { deployedFiles, unlessGone } from "./project-files.ts";

export interface ListedFile {
  path: string;
  size: number;
  sha256: string;
}

/** Null: its files are not those that were deployed. */
type ProjectList = readonly ListedFile[] | null;

export class ProjectLists {
  private readonly dataDir: string;
  private readonly trees: Trees;
  /** The project that was asked for last is the last one. */
  private readonly kept = new Map<string, ProjectList>();
  private keptFiles = 0;
  private readonly running = new Map<string, Promise<ProjectList>>();
  /** Never rejects. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(dataDir: string, trees: Trees) {
    this.dataDir = dataDir;
    this.trees = trees;
  }

  /** The files of a project, sorted by path. Those who ask while it is being read share the result. */
  async of(projectId: string): Promise<ProjectList> {
    if (projectId === "") return [];
    const known = this.kept.get(projectId);
    if (known !== undefined) {
      this.forget(projectId);
      this.keep(projectId, known);
      return known;
    }
    const running = this.running.get(projectId) ?? this.begin(projectId);
    return running;
  }

  private begin(projectId: string): Promise<ProjectList> {
    const read = this.last.then(() => this.read(projectId));
    this.running.set(projectId, read);
    this.last = read.then(
      () => this.running.delete(projectId),
      () => this.running.delete(projectId),
    );
    return read;
  }

  /** A project whose files are wrong may be repaired by a deployment, so that this is not kept. */
  private async read(projectId: string): Promise<ProjectList> {
    const directory = projectDirectory(this.dataDir, projectId);
    await this.trees.fetch(projectId);
    const files = await deployedFiles(directory, projectId).catch(unlessGone);
    if (files === undefined) return null;
    const list: ListedFile[] = [];
    for (const { path, digest } of files) {
      const found = await lstat(join(directory, path)).catch(unlessGone);
      if (found === undefined) return null;
      list.push({ path, size: found.size, sha256: digest });
    }
    this.keep(projectId, list);
    return list;
  }

  private keep(projectId: string, list: ProjectList): void {
    this.kept.set(projectId, list);
    this.keptFiles += list?.length ?? 0;
    for (const oldest of this.kept.keys()) {
      const isFew = this.kept.size <= LISTED_PROJECTS_KEPT_MAX && this.keptFiles <= LISTED_FILES_KEPT_MAX;
      if (isFew) return;
      this.forget(oldest);
    }
  }

  private forget(projectId: string): void {
    this.keptFiles -= this.kept.get(projectId)?.length ?? 0;
    this.kept.delete(projectId);
  }
}
