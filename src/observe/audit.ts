/** Who changed what, one JSON line each, in a file of its own that nothing prunes. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { timestamp } from "../base/clock.ts";
import { isDiskFull } from "../base/disk-full.ts";

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
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    appendFileSync(file, `${JSON.stringify({ time: timestamp(), ...line })}\n`, { mode: 0o600 });
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}
