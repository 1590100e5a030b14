/**
 * Whether a process has run, through a file of the kernel that stays open: one read, where its children and its memory
 * take a dozen calls. A process that forks or allocates has page faults, however short it runs.
 */
import { closeSync, openSync, readSync } from "node:fs";

/** proc_pid_stat(5): fields 10 to 15 after the name, counted from its end: page faults, and CPU time. */
const FIRST_FIELD = 7;
const LAST_FIELD = 13;
const BUFFER = Buffer.alloc(1024);

export class ProcessActivity {
  private fd: number | undefined;
  private before: string | undefined;

  constructor(pid: number) {
    try {
      this.fd = openSync(`/proc/${pid}/stat`, "r");
    } catch {
      // The process is gone, this is not Linux, or no file can be opened.
    }
  }

  /** Whether the process may have run since the last call. True if that is not known. */
  hasRun(): boolean {
    const { before } = this;
    this.before = this.read();
    return this.before === undefined || this.before !== before;
  }

  close(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }

  private read(): string | undefined {
    if (this.fd === undefined) return undefined;
    try {
      const stat = BUFFER.toString("latin1", 0, readSync(this.fd, BUFFER, 0, BUFFER.length, 0));
      return stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .slice(FIRST_FIELD, LAST_FIELD)
        .join(" ");
    } catch {
      return undefined;
    }
  }
}
