/**
 * Which data directory this is: an id in the file `instance.json`, with the inode and the device that the file was made on. A copy, or a move to
 * another file system, has the id of the original and another place: it is told from it, and takes an id of its own
 * (docs/decisions/0016-instances.md).
 */
import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { newToken } from "../base/ids.ts";
import { bootId } from "../base/process-identity.ts";
import { first, type Statements } from "./database.ts";

export interface Instance {
  id: string;
  /** It was made somewhere else: workers and jobs of the original are not its own. */
  isCopy: boolean;
  /** What was written is of another boot: device numbers may differ from it. */
  isStale: boolean;
}

interface InstanceRecord {
  instance_id: string;
  inode: string;
  device: string;
  /** Of the machine, where it tells. */
  boot: string;
}

export const INSTANCE_FILE = "instance.json";

/** Undefined where no release that has instances has used the directory. */
export function readInstance(dataDir: string): Instance | undefined {
  const file = join(dataDir, INSTANCE_FILE);
  const record = readRecord(file);
  if (record === undefined) return undefined;
  const { ino, dev } = statSync(file, { bigint: true });
  // Where the system does not tell, devices are not compared.
  const isSameBoot = record.boot !== "" && record.boot === bootId();
  // Device numbers are given anew at every boot; within one they tell a mounted snapshot from its original.
  const isMoved = isSameBoot && record.device !== String(dev);
  return {
    id: record.instance_id,
    isCopy: record.inode !== String(ino) || isMoved,
    isStale: !isSameBoot,
  };
}

function readRecord(file: string): InstanceRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(file, "utf8")) as InstanceRecord;
    return typeof record.instance_id === "string" ? record : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Error(`${file} cannot be read: ${(error as Error).message}; remove it if this is no copy`, {
      cause: error,
    });
  }
}

export function newInstanceId(): string {
  return newToken();
}

/** Durable when it returns. The file is renamed into place, which keeps the inode that is written in it. */
export function writeInstance(dataDir: string, id: string): void {
  const file = join(dataDir, INSTANCE_FILE);
  const fd = openSync(`${file}.new`, "w", 0o600);
  try {
    const { ino, dev } = fstatSync(fd, { bigint: true });
    const record: InstanceRecord = {
      instance_id: id,
      inode: String(ino),
      device: String(dev),
      boot: bootId() ?? "",
    };
    writeSync(fd, `${JSON.stringify(record)}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(`${file}.new`, file);
}

/** The id of the directory that the database belongs to; empty where no release that has instances has used it. */
export async function recordedInstance(db: Statements): Promise<string> {
  return (await first<{ instance_id: string }>(db, "SELECT instance_id FROM owner"))!.instance_id;
}

export async function recordInstance(db: Statements, id: string): Promise<void> {
  await db.run("UPDATE owner SET instance_id = ?", [id]);
}
