/**
 * Records who changed what, one JSON line each. `audit.log` has what was done with an admin key, but `audit-jobs.log` if
 * it is at the address of an API or with another key: submissions, which may be many, and changes of jobs.
 * `audit-refused.log` has what was refused, what came without a key, and errors of other keys; in a flood, further lines
 * are only counted. So only who may change the server's state can push out lines about that. All are bounded
 * (contracts/limits/logs.ts); read-audit.ts reads them as one.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { timestamp } from "../base/clock.ts";
import { makeDirectories, shortageOf } from "../base/disk-full.ts";
import { printable } from "../base/printable.ts";
import type { Service } from "../base/service.ts";
import {
  AUDIT_FILE_BYTES_MAX,
  AUDIT_FILES_MAX,
  AUDIT_JOBS_FILE_BYTES_MAX,
  AUDIT_JOBS_FILES_MAX,
  AUDIT_REFUSED_FILE_BYTES_MAX,
  AUDIT_REFUSED_FILES_MAX,
  LOGGED_PATH_LENGTH_MAX,
} from "../contracts/limits/logs.ts";
import { hideInText } from "../contracts/secrets.ts";
import { cutText } from "./cut-text.ts";
import { LineFlood } from "./line-flood.ts";
import { rotate } from "./numbered-files.ts";

export interface AuditLine {
  method: string;
  path: string;
  /** The id of the key, or the token's subject; null if there was neither. */
  by: string | null;
  /** The name of the key, if it has one. */
  by_name?: string | undefined;
  /** What the key or token permits, as in the claim of a token. */
  scope?: string | undefined;
  /** The address that the connection came from. */
  client?: string | undefined;
  status: number;
  request_id: string;
  /** The things created or changed, if the path does not say it: a key's id, the APIs of a deployment. */
  what?: string | undefined;
}

export interface AuditFile {
  name: string;
  bytesMax: number;
  /** Including the file that is written to. */
  filesMax: number;
}

const DONE: AuditFile = { name: "audit.log", bytesMax: AUDIT_FILE_BYTES_MAX, filesMax: AUDIT_FILES_MAX };
const OF_JOBS: AuditFile = {
  name: "audit-jobs.log",
  bytesMax: AUDIT_JOBS_FILE_BYTES_MAX,
  filesMax: AUDIT_JOBS_FILES_MAX,
};
const REFUSED: AuditFile = {
  name: "audit-refused.log",
  bytesMax: AUDIT_REFUSED_FILE_BYTES_MAX,
  filesMax: AUDIT_REFUSED_FILES_MAX,
};
export const AUDIT_FILES: readonly AuditFile[] = [DONE, OF_JOBS, REFUSED];
/** The file of former releases. */
const FORMER_NAME = "audit.jsonl";

export class Audit implements Service {
  private readonly directory: string;
  /** The files whose last line is known to be complete. */
  private readonly whole = new Set<string>();
  private readonly refused = new LineFlood<AuditLine>((line, more) =>
    this.append(REFUSED, more === 0 ? line : { ...line, more }),
  );

  constructor(directory: string) {
    this.directory = directory;
  }

  async start(): Promise<void> {
    const former = join(this.directory, FORMER_NAME);
    const own = join(this.directory, DONE.name);
    if (existsSync(former) && !existsSync(own)) renameSync(former, own);
  }

  async stop(): Promise<void> {
    this.refused.flush();
  }

  record({ by, path, what, scope, ...line }: AuditLine): void {
    const cut = {
      ...line,
      ...(scope === undefined ? {} : { scope: cutText(scope, LOGGED_PATH_LENGTH_MAX) }),
      ...(what === undefined ? {} : { what: cutText(what, LOGGED_PATH_LENGTH_MAX) }),
      by: by === null ? null : cutText(by, LOGGED_PATH_LENGTH_MAX),
      // A caller may put a key in the place of its id. It must not be readable here.
      path: cutText(hideInText(path), LOGGED_PATH_LENGTH_MAX),
    };
    const isAdmin = scope?.split(" ").includes("admin") === true;
    const isRefused = line.status === 401 || line.status === 403 || (line.status >= 400 && !isAdmin);
    if (by === null || isRefused) this.refused.record(`${line.status} ${by}`, cut);
    else this.append(isAdmin && path.startsWith("/-/") ? DONE : OF_JOBS, cut);
  }

  /** If the disk is full the line is lost: nothing fails because of it. */
  private append({ name, bytesMax, filesMax }: AuditFile, line: AuditLine & { more?: number }): void {
    const file = join(this.directory, name);
    try {
      makeDirectories(this.directory);
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) >= bytesMax) rotate(file, filesMax);
      const text = printable(JSON.stringify({ time: timestamp(), ...line }));
      // A full disk may have cut off the line before. This one must not be joined to it.
      const end = this.whole.delete(name) || endsWhole(file) ? "" : "\n";
      appendFileSync(file, `${end}${text}\n`, { mode: 0o600 });
      this.whole.add(name);
    } catch (error) {
      if (shortageOf(error) === undefined) throw error;
    }
  }
}

/** Whether appended text begins a new line. */
function endsWhole(file: string): boolean {
  if (!existsSync(file)) return true;
  const fd = openSync(file, "r");
  try {
    const last = Buffer.alloc(1);
    const { size } = fstatSync(fd);
    return size === 0 || (readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === 0x0a);
  } finally {
    closeSync(fd);
  }
}
