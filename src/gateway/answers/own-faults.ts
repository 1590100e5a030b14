/**
 * The gateway's log of its own 5xx responses: JSON lines on stderr, shaped like the controller's. One instance per
 * process.
 */
import { wallMs } from "../../base/clock.ts";
import { type FaultLine, FaultLog } from "../../observe/fault-log.ts";
import { say } from "../../observe/words.ts";

const LEVELS = { warn: 40, error: 50 } as const;

export const ownFaults = new FaultLog(writeLine);

function writeLine({ level, err, ...line }: FaultLine): void {
  const cause = err === undefined ? {} : { err: err instanceof Error ? err.stack : String(err) };
  const common = {
    level: LEVELS[level],
    time: new Date(wallMs()).toISOString(),
    name: "gateway",
    pid: process.pid,
  };
  say(JSON.stringify({ ...common, ...line, ...cause }));
}
