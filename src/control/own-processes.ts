/** The server's own processes, as the kernel counts them. Only Linux tells; elsewhere there are none. */
import { readdirSync, readFileSync } from "node:fs";
import { wallMs } from "../base/clock.ts";
import { processAgeMs, programOf } from "../base/process-identity.ts";

export interface OwnProcess {
  process: "parent" | "gateway" | "controller";
  cpuSeconds: number;
  residentBytes: number;
  openFiles: number;
  /** Unix time. */
  startSeconds: number;
}

/** The kernel counts CPU time in hundredths of a second for every program. */
const TICKS_PER_SECOND = 100;

/** The parent and its children. One that ends meanwhile is left out. */
export function ownProcesses(parentPid: number): OwnProcess[] {
  if (process.platform !== "linux") return [];
  const children = read(`/proc/${parentPid}/task/${parentPid}/children`).trim().split(" ").map(Number);
  const named = children.sort((a, b) => a - b).map((pid) => [roleOf(programOf(pid) ?? ""), pid] as const);
  return [["parent", parentPid] as const, ...named].flatMap(([role, pid]) =>
    role === undefined ? [] : measured(role, pid),
  );
}

function roleOf(program: string): OwnProcess["process"] | undefined {
  if (program.includes(" __gateway")) return "gateway";
  return program.includes(" __controller") ? "controller" : undefined;
}

function measured(role: OwnProcess["process"], pid: number): OwnProcess[] {
  const stat = read(`/proc/${pid}/stat`);
  // The name of the program is in parentheses, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [userTicks, systemTicks, startTime] = [fields[11], fields[12], fields[19]];
  const resident = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1];
  const ageMs = startTime === undefined ? undefined : processAgeMs(startTime);
  if (resident === undefined || ageMs === undefined) return [];
  return [
    {
      process: role,
      cpuSeconds: (Number(userTicks) + Number(systemTicks)) / TICKS_PER_SECOND,
      residentBytes: Number(resident) * 1024,
      openFiles: openFilesOf(pid),
      startSeconds: (wallMs() - ageMs) / 1000,
    },
  ];
}

function openFilesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
