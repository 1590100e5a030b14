/** The server's own processes, as the kernel counts them. Only Linux tells; elsewhere there are none. */
import { readdirSync, readFileSync } from "node:fs";
import { programOf, statFields } from "../base/process-identity.ts";

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
  const named = childrenOf(parentPid)
    .sort((a, b) => a - b)
    .map((pid) => [roleOf(programOf(pid) ?? ""), pid] as const);
  return [["parent", parentPid] as const, ...named].flatMap(([role, pid]) =>
    role === undefined ? [] : measured(role, pid),
  );
}

function roleOf(program: string): OwnProcess["process"] | undefined {
  if (program.includes(" __gateway")) return "gateway";
  return program.includes(" __controller") ? "controller" : undefined;
}

function measured(role: OwnProcess["process"], pid: number): OwnProcess[] {
  try {
    const fields = statFields(pid);
    const [userTicks, systemTicks, startTime] = [fields[11], fields[12], fields[19]];
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    if (resident === undefined) return [];
    return [
      {
        process: role,
        cpuSeconds: (Number(userTicks) + Number(systemTicks)) / TICKS_PER_SECOND,
        residentBytes: Number(resident) * 1024,
        openFiles: readdirSync(`/proc/${pid}/fd`).length,
        startSeconds: bootSeconds() + Number(startTime) / TICKS_PER_SECOND,
      },
    ];
  } catch {
    return [];
  }
}

/** When the machine started (Unix time, whole seconds), as proc(5) says. */
function bootSeconds(): number {
  return Number(/^btime (\d+)$/m.exec(readFileSync("/proc/stat", "latin1"))?.[1]);
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").map(Number);
  } catch {
    return [];
  }
}
