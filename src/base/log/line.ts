/** A line of the log as people read it on a terminal. Texts of others cannot begin a line of their own. Pure. */
import { printableLine } from "../printable.ts";

interface Line {
  level: string;
  time: string;
  msg: string;
  err?: string | { stack?: string; message?: string };
  [field: string]: unknown;
}

/** What people do not need, or what the line has in another place. */
const LEFT_OUT: ReadonlySet<string> = new Set(["level", "time", "msg", "err", "event", "name", "pid"]);

/** `HH:MM:SS level message (field=value ...)` in local time, and the stack of an error below it. */
export function lineForPeople(json: string): string {
  const { err, ...line } = JSON.parse(json) as Line;
  const time = new Date(line.time).toTimeString().slice(0, 8);
  const fields = Object.entries(line)
    .filter(([name, value]) => !LEFT_OUT.has(name) && value !== null && value !== "")
    .map(
      ([name, value]) =>
        `${name}=${typeof value === "string" ? printableLine(value) : JSON.stringify(value)}`,
    );
  const behind = fields.length === 0 ? "" : ` (${fields.join(" ")})`;
  const stack = typeof err === "string" ? err : (err?.stack ?? err?.message);
  const below = stack === undefined ? "" : `${stack.replace(/^/gm, "    ")}\n`;
  return `${time} ${line.level.padEnd(5)} ${printableLine(line.msg)}${behind}\n${below}`;
}
