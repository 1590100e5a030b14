/** The processes of this machine, and how to end several. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** All at once, even if one of them has just ended: processes that killed ones leave behind often do. */
export function killAll(pids: Iterable<number>): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

export interface ProcessView {
  pid: number;
  ppid: number;
  command: string;
}

export function processes(): ProcessView[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "latin1");
        const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        if (state === "Z") return [];
        return [
          {
            pid: Number(name),
            ppid: Number(ppid),
            command: readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " "),
          },
        ];
      } catch {
        return [];
      }
    });
}

/** What a process has open: paths, and names such as `socket:[4711]`. */
export function openFiles(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      // Closed meanwhile.
      return [];
    }
  });
}
