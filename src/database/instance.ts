/**
 * Identifies a data directory: an id in the file `instance.json`, with the inode and the device on which the file was
 * made. A copy, or a move to another file system, has the original's id in another place. So it is recognised, and gets
 * a new id (docs/decisions/0016-instances.md).
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
import { newToken } from "../base/ids.ts";
import { bootId } from "../base/process-identity.ts";
import { instanceFile } from "../contracts/data-layout.ts";

export interface Instance {
  id: string;
  /** The id that its database had when the directory got a new one. The start that changed it may not have gone on. */
  formerId: string | undefined;
  /** It was made somewhere else: workers and jobs of the original do not belong to it. */
  isCopy: boolean;
  /** The file was written in another boot, so device numbers may differ from it. */
  isStale: boolean;
}

interface InstanceRecord {
  instance_id: string;
  former_id?: string | undefined;
  inode: string;
  device: string;
  /** The boot of the machine; empty if the system does not identify boots. */
  boot: string;
}

/** Undefined if no release with instances has used the directory. */
export function readInstance(dataDir: string): Instance | undefined {
  const file = instanceFile(dataDir);
  const record = readRecord(file);
  if (record === undefined) return undefined;
  const { ino, dev } = statSync(file, { bigint: true });
  // If the system does not identify boots, devices are not compared.
  const isSameBoot = record.boot !== "" && record.boot === bootId();
  // Every boot gives out new device numbers. Within one boot they distinguish a mounted snapshot from its original.
  const isMoved = isSameBoot && record.device !== String(dev);
  return {
    id: record.instance_id,
    formerId: record.former_id,
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
    throw new Error(`${file} cannot be read: ${(error as Error).message}; remove it if this is not a copy`, {
      cause: error,
    });
  }
}

export function newInstanceId(): string {
  return newToken();
}

/**
 * `formerId`: the id that the database still has. The content is synced before the file is renamed into place. A rename
 * keeps the inode that is written in the file.
 */
export function writeInstance(dataDir: string, id: string, formerId?: string): void {
  const file = instanceFile(dataDir);
  const fd = openSync(`${file}.new`, "w", 0o600);
  try {
    const { ino, dev } = fstatSync(fd, { bigint: true });
    const record: InstanceRecord = {
      instance_id: id,
      former_id: formerId,
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
