/**
 * Work that nobody waits for. Each promise has somebody who hears of its failure, because one that nobody hears of ends the
 * process: `npm run check` holds every other file to it.
 */
import { reportFault } from "./boundary.ts";

/** Without `onFault` a failure is reported as an internal error, and ends nothing else. */
export function inBackground(work: Promise<unknown>, onFault: (error: Error) => unknown = report): void {
  work.catch(onFault).catch(report);
}

function report(error: Error): void {
  reportFault(error, "background work");
}
