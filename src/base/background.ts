/**
 * Work that nobody waits for. Each promise has somebody who hears of its failure, because one that nobody hears of ends the
 * process: `npm run check` holds every other file to it.
 */
import type { Log } from "./log.ts";

let log: Log | undefined;

/** Without `onFault` a failure is an internal error: it is logged, and ends nothing else. */
export function inBackground(work: Promise<unknown>, onFault: (error: Error) => unknown = logFault): void {
  work
    .catch(onFault)
    .catch(logFault)
    .catch(() => {});
}

/** The log is loaded when it is needed: the command line starts without it. */
async function logFault(error: Error): Promise<void> {
  const { openLog } = await import("./log.ts");
  log ??= openLog("quern");
  log.error({ err: error }, "internal error in background work");
}
