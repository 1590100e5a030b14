/**
 * Workers of jobs and stages of applications run at a lower priority: a machine whose cores are all busy with them still answers
 * requests at once. On an idle machine it changes nothing.
 */
import { writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { inBackground } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";

/** A tenth of the time of a process of the usual priority that also wants the core (sched(7)). */
export const BACKGROUND_NICE = 10;
/** Linux takes ten changes a second from a user who is not root. */
const RETRY_MS = 200;
const RETRIES_MAX = 50;

export function lowerPriority(pid: number): void {
  inBackground(lower(pid));
}

async function lower(pid: number): Promise<void> {
  try {
    setPriority(pid, BACKGROUND_NICE);
  } catch {
    // It is gone already, or a system call filter forbids it.
    return;
  }
  // Each worker is a session, and Linux may share the processor among sessions first (sched(7), the autogroup feature).
  for (let retries = 0; retries < RETRIES_MAX; retries++) {
    const error = await writeFile(`/proc/${pid}/autogroup`, String(BACKGROUND_NICE)).then(
      () => undefined,
      (reason: NodeJS.ErrnoException) => reason,
    );
    if (error?.code !== "EAGAIN") return;
    await delay(RETRY_MS);
  }
}
