/** Who changed what, one JSON line each, in a file of its own that nothing prunes. */
import { appendFileSync } from "node:fs";
import { dirname } from "node:path";
import { timestamp } from "../base/clock.ts";
import { makeDirectories, shortageOf } from "../base/disk-full.ts";

export interface AuditLine {
  method: string;
  path: string;
  /** The id of the key, or the token's subject; null where there was none. */
  by: string | null;
  status: number;
  request_id: string;
}

/** Where the disk is full the line is lost: nothing fails for it. */
export function appendAudit(file: string, line: AuditLine): void {
  try {
    makeDirectories(dirname(file));
    appendFileSync(file, `${JSON.stringify({ time: timestamp(), ...line })}\n`, { mode: 0o600 });
  } catch (error) {
    if (shortageOf(error) === undefined) throw error;
  }
}
