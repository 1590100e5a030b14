/**
 * Continues workers that somebody has stopped (SIGSTOP): a job would wait for a stopped worker for ever, and no message
 * would say why. One that a debugger holds has another state, and is left alone. Without /proc it does nothing.
 */
import { processLog } from "../../base/log.ts";
import { every } from "../../base/loop/pulse.ts";
import { signalGroup, statFields } from "../../base/process-identity.ts";

/** A worker that is stopped at two polls in a row is continued. */
const STOPPED_POLL_MS = 5_000;
/** proc_pid_stat(5): stopped by a signal. `t` is stopped by a debugger. */
const STOPPED = "T";

interface Watched {
  worker_id: string;
  /** At the last poll. */
  wasStopped: boolean;
}

export class StoppedWorkers {
  private readonly byPid = new Map<number, Watched>();
  private readonly pollMs: number;
  private unwatch: (() => void) | undefined;

  constructor(pollMs = STOPPED_POLL_MS) {
    this.pollMs = pollMs;
  }

  add(pid: number, worker_id: string): void {
    this.byPid.set(pid, { worker_id, wasStopped: false });
    this.unwatch ??= every(this.pollMs, "stopped workers", () => this.look());
  }

  remove(pid: number): void {
    this.byPid.delete(pid);
    if (this.byPid.size > 0) return;
    this.unwatch?.();
    this.unwatch = undefined;
  }

  private look(): void {
    for (const [pid, watched] of this.byPid) {
      const isStopped = stateOf(pid) === STOPPED;
      if (isStopped && watched.wasStopped) proceed(pid, watched);
      watched.wasStopped = isStopped;
    }
  }
}

function proceed(pid: number, { worker_id }: Watched): void {
  signalGroup(pid, "SIGCONT");
  processLog().warn({ event: "worker_continued", worker_id, pid }, "a stopped worker (SIGSTOP) goes on");
}

/** Undefined if there is no such process, or no /proc. */
function stateOf(pid: number): string | undefined {
  try {
    return statFields(pid)[0];
  } catch {
    return undefined;
  }
}
