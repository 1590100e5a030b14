/**
 * Takes a backup of a data directory that a server uses: its database and files, as they were at one moment. Nothing
 * stops for it: no commit happens while the moment is fixed, which takes milliseconds, and the rest happens beside the
 * work (docs/decisions/0029-backups.md).
 */
import { lstatSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { timestamp } from "../base/clock.ts";
import { removeTree } from "../base/files/remove-tree.ts";
import { newToken } from "../base/ids.ts";
import { TimeSlices } from "../base/loop/turns.ts";
import {
  applicationsDirectory,
  backupsDirectory,
  databaseFile,
  jobsDirectory,
  outputsDirectory,
  projectsDirectory,
} from "../contracts/data-layout.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";
import type { Database } from "../database/database.ts";
import { SCHEMA_STEPS } from "../database/schema-steps.ts";
import { DATABASE, FORMAT, type Manifest } from "./manifest.ts";
import { Mirror } from "./mirror.ts";
import { PinnedDatabase } from "./pinned-database.ts";

/** What cannot be made again from the rest. Environments, logs and routes can, or belong to the former machine. */
const KEPT = [projectsDirectory, jobsDirectory, outputsDirectory, applicationsDirectory];

export interface BackupOptions {
  dataDir: string;
  db: Database;
  /** The server uses PostgreSQL. */
  isOnPostgres: boolean;
  /** Its files are in an object store. */
  hasState: boolean;
  version: string;
}

export interface BackupEntry {
  /** Below the snapshot's directory, with `/`. */
  path: string;
  /** Undefined for a directory. */
  bytes: number | undefined;
  mode: number;
}

export interface Snapshot {
  manifest: Manifest;
  /** Where the entries are. */
  directory: string;
  entries: readonly BackupEntry[];
}

/** Removes what a killed server has left. */
export async function removeLeftBackups(dataDir: string): Promise<void> {
  await removeTree(backupsDirectory(dataDir));
}

export class Backups {
  private readonly options: BackupOptions;
  private isBusy = false;

  constructor(options: BackupOptions) {
    this.options = options;
  }

  /**
   * Calls `send` with the snapshot, which is removed once `send` has ended. Throws `wrong_state` while another backup is
   * taken, and `not_supported_yet` on PostgreSQL.
   */
  async *withSnapshot<T>(send: (snapshot: Snapshot) => AsyncGenerator<T>): AsyncGenerator<T> {
    const { dataDir } = this.options;
    this.begin();
    const directory = join(backupsDirectory(dataDir), newToken());
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      yield* send(await this.snapshot(directory));
    } finally {
      this.isBusy = false;
      await removeTree(directory);
    }
  }

  private begin(): void {
    if (this.options.isOnPostgres)
      throw new ServiceError(
        "not_supported_yet",
        this.options.hasState
          ? "this server keeps its database in PostgreSQL and its files in an object store: save the database with pg_dump, then copy the objects below --state"
          : "this server keeps its state in PostgreSQL: stop it, then save the database with pg_dump and the data directory with tar",
      );
    if (this.isBusy)
      throw new ServiceError("wrong_state", "another backup is being taken; try again when it has ended");
    this.isBusy = true;
  }

  private async snapshot(directory: string): Promise<Snapshot> {
    const { dataDir, db, version } = this.options;
    const mirrors = KEPT.map((of) => new Mirror(of(dataDir), of(directory)));
    const update = async () => {
      for (const mirror of mirrors) await mirror.update();
    };
    await update();
    const database = await PinnedDatabase.open(databaseFile(dataDir), join(directory, DATABASE));
    try {
      const created = timestamp();
      // Nothing is committed during a transaction. A file is removed only after the commit that makes it useless. So the
      // files are there that the copy needs.
      await db.transaction(async () => {
        await database.pin();
        await update();
      });
      await database.copied();
      const entries = await entriesBelow(directory);
      const files = entries.flatMap(({ bytes }) => bytes ?? []);
      const manifest: Manifest = {
        format: FORMAT,
        quern_version: version,
        schema_version: SCHEMA_STEPS.length,
        created_time: created,
        files: files.length,
        bytes: files.reduce((sum, bytes) => sum + bytes, 0),
      };
      return { manifest, directory, entries };
    } finally {
      await database.close();
    }
  }
}

/** The database first, then the directories, each before what is in it. */
async function entriesBelow(directory: string): Promise<BackupEntry[]> {
  const slices = new TimeSlices(SLICE_MS);
  const entries = [entryOf(directory, DATABASE)];
  const walk = async (path: string) => {
    for (const name of readdirSync(join(directory, path)).sort()) {
      if (slices.isOver) await slices.rest();
      const entry = entryOf(directory, path === "" ? name : `${path}/${name}`);
      if (entry.path === DATABASE) continue;
      entries.push(entry);
      if (entry.bytes === undefined) await walk(entry.path);
    }
  };
  await walk("");
  return entries;
}

function entryOf(directory: string, path: string): BackupEntry {
  const info = lstatSync(join(directory, path));
  return { path, bytes: info.isDirectory() ? undefined : info.size, mode: info.mode & 0o777 };
}
