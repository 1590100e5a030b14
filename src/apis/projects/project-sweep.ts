/**
 * Removes the files of projects that nothing needs any more. A project is needed by:
 * - a deployed API, whose former versions can be rolled back to
 * - a job that can be run again
 * - an application
 * - a running worker
 * It considers only projects that this database knows, so that a lost or empty database removes nothing.
 */
import { existsSync, renameSync } from "node:fs";
import { removeTree } from "../../base/files/remove-tree.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { projectDirectory } from "../../contracts/data-layout.ts";
import { PRUNE_EVERY_MS } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import type { Trees } from "../../state/trees.ts";
import { INCOMING } from "./project-store.ts";

/** A delay, so that the deletion of several APIs gets its response before the files are removed. */
const SOON_MS = 500;

/** Projects that somebody may still ask for. */
const NEEDED = `
  SELECT v.project_id FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.pruned_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)
  UNION SELECT project_id FROM applications`;
/** Of those, projects that run now, or may run at once. The others need no copy of what is in the state. */
const IN_USE = `
  SELECT v.project_id FROM api_versions v WHERE
    EXISTS (SELECT 1 FROM apis a WHERE a.name = v.name AND a.api_id = v.api_id)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.api_name = v.name AND j.api_id = v.api_id AND j.end_time IS NULL)
    OR EXISTS (SELECT 1 FROM workers w WHERE w.api_name = v.name AND w.api_id = v.api_id)
  UNION SELECT project_id FROM applications`;
/** Workers of a version that was deleted. Their project is unknown. */
const UNKNOWN_WORKERS = `
  SELECT count(*) AS n FROM workers w
  WHERE NOT EXISTS (SELECT 1 FROM api_versions v WHERE v.name = w.api_name AND v.api_id = w.api_id)`;

export interface ProjectSweepOptions {
  db: Database;
  log: Log;
  dataDir: string;
  /** Where the projects are kept. */
  trees: Trees;
  /** Runs after each sweep, and removes other things. */
  afterwards: () => Promise<unknown>;
}

export class ProjectSweep implements Service {
  private readonly options: ProjectSweepOptions;
  /** Deployments in progress: they may rely on files that no row of the database names yet. */
  private deployments = 0;
  private sweeping: Promise<string[]> | undefined;
  private running: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(options: ProjectSweepOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.wakeIn(PRUNE_EVERY_MS / 60);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** Sweeps shortly after something was deleted. */
  soon(): void {
    this.wakeIn(SOON_MS);
  }

  /** Runs `work`, and removes no files meanwhile. */
  async beside<T>(work: () => Promise<T>): Promise<T> {
    while (this.sweeping !== undefined) await this.sweeping.catch(() => {});
    this.deployments++;
    try {
      return await work();
    } finally {
      this.deployments--;
    }
  }

  /** Registers a project, so that it is removed once nothing needs it. */
  async know(projectId: string): Promise<void> {
    await this.options.db.run("INSERT INTO projects VALUES (?) ON CONFLICT (project_id) DO NOTHING", [
      projectId,
    ]);
  }

  /** Makes the files of a project durable, before a row names it as that of a version. */
  keep({ project_id, files }: { project_id: string; files: readonly { path: string }[] }): Promise<void> {
    return this.options.trees.keep(
      project_id,
      files.map(({ path }) => path),
    );
  }

  /** The files of a deployed project are on the disk when this resolves. */
  fetch(projectId: string): Promise<boolean> {
    return projectId === "" ? Promise.resolve(true) : this.options.trees.fetch(projectId);
  }

  /** Returns the ids of the removed projects; undefined if it is not known now which are needed. */
  async runOnce(): Promise<string[] | undefined> {
    if (this.deployments > 0 || this.sweeping !== undefined) return undefined;
    this.sweeping = this.takeAway();
    const gone = await this.sweeping.finally(() => {
      this.sweeping = undefined;
    });
    for (const id of gone) {
      await removeTree(this.removedPath(id));
      // A deployment of the same files may have created them again.
      if (existsSync(this.path(id))) continue;
      await this.options.db.run("DELETE FROM projects WHERE project_id = ?", [id]);
    }
    return gone;
  }

  /** Renames unneeded projects at once, because removing a large directory takes a while. */
  private async takeAway(): Promise<string[]> {
    const { db, trees } = this.options;
    const [unknown] = await db.all<{ n: number }>(UNKNOWN_WORKERS);
    if (unknown!.n > 0) return [];
    const unneeded = await db.all<{ project_id: string }>(
      `SELECT project_id FROM projects WHERE project_id NOT IN (${NEEDED})`,
    );
    for (const { project_id } of unneeded) {
      // Before its row goes: a store that does not respond keeps the row, for the next time.
      await trees.remove(project_id);
      this.putAside(project_id);
    }
    if (trees.areCopies) await this.takeCopies();
    return unneeded.map(({ project_id }) => project_id);
  }

  /** Removes copies that nothing uses now. So the disk has no more than what runs. */
  private async takeCopies(): Promise<void> {
    const unused = await this.options.db.all<{ project_id: string }>(
      `SELECT project_id FROM projects WHERE project_id NOT IN (${IN_USE})`,
    );
    for (const { project_id } of unused) {
      this.putAside(project_id);
      await removeTree(this.removedPath(project_id));
    }
  }

  private putAside(projectId: string): void {
    if (existsSync(this.path(projectId))) renameSync(this.path(projectId), this.removedPath(projectId));
  }

  private path(projectId: string): string {
    return projectDirectory(this.options.dataDir, projectId);
  }

  /** A name that the next start removes, in case this process is killed before it does. */
  private removedPath(projectId: string): string {
    return projectDirectory(this.options.dataDir, `${INCOMING}removed-${projectId}`);
  }

  private wakeIn(ms: number): void {
    clearTimeout(this.timer);
    if (this.isStopped) return;
    this.timer = setTimeout(() => {
      this.wakeIn(PRUNE_EVERY_MS);
      this.running = this.runOnce()
        .then((gone) => {
          if (gone === undefined) this.soon();
          else if (gone.length > 0)
            this.options.log.info({ event: "projects_removed", projects: gone }, "removed unused projects");
          return gone === undefined ? undefined : this.options.afterwards();
        })
        .then(() => {})
        .catch((error: Error) =>
          this.options.log.error(
            { event: "projects_not_removed", err: error },
            "unused projects could not be removed",
          ),
        );
    }, ms).unref();
  }
}
