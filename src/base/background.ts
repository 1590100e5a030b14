/**
 * Work that nobody waits for. Each promise has somebody who hears of its failure, because one that nobody hears of ends the
 * process: `npm run check` holds every other file to it.
 */
import { type Log, openLog } from "./log.ts";

let log: Log | undefined;

/** Without `onFault` a failure is an internal error: it is logged, and ends nothing else. */
export function inBackground(work: Promise<unknown>, onFault: (error: Error) => void = logFault): void {
  work.catch(onFault).catch(logFault);
}

function logFault(error: Error): void {
  log ??= openLog("quern");
  log.error({ err: error }, "internal error in background work");
}
