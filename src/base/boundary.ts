/**
 * The outermost boundary of a unit of work: one job, API, queue, request, connection or timer. What it throws and nobody expected
 * ends that unit alone; the process goes on with all others. What follows for the unit is its owner's business.
 */

/** What was thrown, and by which unit, in words. */
export type OnFault = (error: Error, unit: string) => void;

let onContained: OnFault = logFault;

/** Where faults go whose unit has nothing else to do about them: once a process. */
export function reportFaultsTo(report: OnFault): void {
  onContained = report;
}

/** Reports a fault that ends nothing. */
export function reportFault(thrown: unknown, unit: string): void {
  onContained(asError(thrown), unit);
}

/** Does `work` and forgets it: never throws, now or later. Without `onFault` what it throws is reported, and that is all. */
export function contain(unit: string, work: () => unknown, onFault: OnFault = reportFault): void {
  try {
    const result = work();
    if (result instanceof Promise) result.catch((thrown: unknown) => tell(unit, thrown, onFault));
  } catch (thrown) {
    tell(unit, thrown, onFault);
  }
}

/** A promise that nobody waits for, as `contain`: `npm run check` holds each promise to a `catch`, an `await`, or this. */
export function inBackground(work: Promise<unknown>, onFault: OnFault = reportFault): void {
  contain("background work", () => work, onFault);
}

/** The same callbacks, each within a boundary of its own. */
export function containAll<Callbacks extends object>(
  unit: string,
  callbacks: Callbacks,
  onFault: OnFault,
): Callbacks {
  const contained = Object.entries(callbacks).map(([name, callback]) => [
    name,
    (...given: unknown[]) =>
      contain(unit, () => (callback as (...given: unknown[]) => unknown)(...given), onFault),
  ]);
  return Object.fromEntries(contained) as Callbacks;
}

/** What has no boundary of its own, or throws in it, ends nothing either: the last net of a process that serves others. */
export function surviveAll(report: (error: Error) => void): void {
  process.on("uncaughtException", (thrown: unknown) => report(asError(thrown)));
  process.on("unhandledRejection", (thrown: unknown) => report(asError(thrown)));
}

function tell(unit: string, thrown: unknown, onFault: OnFault): void {
  const error = asError(thrown);
  try {
    onFault(error, unit);
  } catch (again) {
    reportFault(error, unit);
    if (onFault !== reportFault) reportFault(again, unit);
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The log is loaded when it is needed: the command line starts without it. */
function logFault(error: Error, unit: string): void {
  import("./log.ts")
    .then(({ openLog }) => openLog("quern").error({ err: error }, `internal error in ${unit}`))
    .catch(() => {});
}
