/** The processes of the server under attack, by what they are. */
import { readFileSync } from "node:fs";
import { runtimeDirectory } from "../../src/settings/runtime-directory.ts";
import { processes } from "../harness/processes.ts";
import type { TestServer } from "../harness/server.ts";

export type Role = "controller" | "gateway" | "job worker" | "replica";

const PATTERNS: Record<Role, string> = {
  controller: "__controller",
  gateway: "__gateway",
  "job worker": "/b-",
  replica: "/r-",
};

export function processesOf(server: TestServer, role: Role): number[] {
  const directory = runtimeDirectory(server.dataDir);
  const isOurs = ({ ppid, command }: { ppid: number; command: string }) =>
    role === "controller" || role === "gateway" ? ppid === server.parent!.pid : command.includes(directory);
  return processes()
    .filter((one) => isOurs(one) && one.command.includes(PATTERNS[role]))
    .map(({ pid }) => pid);
}

/** The lines of a record so far; the last may be on its way. */
export function recordLines(file: string): string[][] {
  let text: string;
  try {
    text = readFileSync(file, "latin1");
  } catch {
    return [];
  }
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => line.split(" "));
}
