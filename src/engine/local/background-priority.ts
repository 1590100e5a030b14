/**
 * Lowers the priority of workers of jobs and of stages of applications. A machine whose cores are all busy with them
 * still responds to requests at once. On an idle machine it changes nothing.
 */
import { writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { inBackground } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";

/** Such a process gets a tenth of the time of a normal process that wants the same core (sched(7)). */
export const BACKGROUND_NICE = 10;
/** Linux allows ten changes a second to a user who is not root. */
const RETRY_MS = 200;
const RETRIES_MAX = 50;

export function lowerPriority(pid: number): void {
  inBackground(lower(pid));
}

async function lower(pid: number): Promise<void> {
  try {
    setPriority(pid, BACKGROUND_NICE);
  } catch {
    // The process is gone, or a system call filter forbids this.
    return;
  }
  // Each worker is a session. Linux may first share the processor among sessions (sched(7), the autogroup feature).
  for (let retries = 0; retries < RETRIES_MAX; retries++) {
    const error = await writeFile(`/proc/${pid}/autogroup`, String(BACKGROUND_NICE)).then(
      () => undefined,
      (reason: NodeJS.ErrnoException) => reason,
    );
    if (error?.code !== "EAGAIN") return;
    await delay(RETRY_MS);
  }
}
