/**
 * The outermost boundary of a unit of work: one job, API, queue, request, connection or timer. An unexpected exception
 * ends only that unit, and the process continues with all others. The owner of the unit decides what follows for it.
 */

/** Gets an exception, and the unit that threw it, in words. */
export type OnFault = (error: Error, unit: string) => void;

let onContained: OnFault = logFault;

/** Sets where faults go if their unit does nothing else about them. Called once per process. */
export function reportFaultsTo(report: OnFault): void {
  onContained = report;
}

/** Reports a fault that ends nothing. */
export function reportFault(thrown: unknown, unit: string): void {
  onContained(asError(thrown), unit);
}

/** Runs `work` without waiting for it. Never throws, now or later. Without `onFault`, an exception is only reported. */
export function contain(unit: string, work: () => unknown, onFault: OnFault = reportFault): void {
  try {
    const result = work();
    if (result instanceof Promise) result.catch((thrown: unknown) => tell(unit, thrown, onFault));
  } catch (thrown) {
    tell(unit, thrown, onFault);
  }
}

/**
 * Like `contain`, for a promise that nobody awaits. `npm run check` requires a `catch`, an `await` or this for each
 * promise.
 */
export function inBackground(work: Promise<unknown>, onFault: OnFault = reportFault): void {
  contain("background work", () => work, onFault);
}

/** The same callbacks, each within a separate boundary. */
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

/** The last resort of a process that serves others: it survives an exception that no boundary caught. */
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

/** Loads the log only when it is needed, because the command line starts without it. */
function logFault(error: Error, unit: string): void {
  import("./log.ts")
    .then(({ processLog }) =>
      processLog().error({ event: "internal_error", err: error }, `internal error in ${unit}`),
    )
    .catch(() => {});
}
