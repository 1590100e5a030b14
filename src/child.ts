/**
 * The entry point of gateway and controller, which the parent starts. The parent sends the options by message. SIGTERM
 * or the parent's death stops them. Each loads only its own modules (gateway-child.ts, controller-child.ts), because
 * loading those of the other took a fifth of a start.
 */
import { reportFaultsTo, surviveAll } from "./base/boundary.ts";
import { logWarnings, openProcessLog, processLog } from "./base/log.ts";
import { every } from "./base/loop/pulse.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { HEARTBEAT_MS } from "./contracts/limits/processes.ts";
import { hideInText } from "./contracts/secrets.ts";
import type { FaultLog } from "./observe/fault-log.ts";
import { outliveReaders } from "./observe/words.ts";
import { ALIVE, type ChildRole, EXIT_CANNOT_START, EXIT_TRY_AGAIN } from "./parent/supervised-child.ts";

/**
 * Twice as long as batches in hand get. A dead parent stops nobody, and a controller may wait for something that never
 * happens, such as free disk space.
 */
const CONTROLLER_LEAVES_MS_MAX = 20_000;

/** Starts the child's role. Resolves to the function that stops it. */
export type StartRole = (options: string) => Promise<(forGood: boolean) => Promise<void>>;

interface ChildModule {
  start: StartRole;
  /** The log for unexpected errors of this process. */
  faults: FaultLog;
}

export async function runChild(role: ChildRole): Promise<void> {
  process.on("SIGINT", () => {});
  outliveReaders();
  logWarnings();
  openProcessLog(role, hideInText);
  // A start may wait long for disk space. Without the parent, nobody needs it.
  const leaveUnstarted = () => process.exit(0);
  process.once("disconnect", leaveUnstarted);
  every(HEARTBEAT_MS, "the heartbeat", () => sayToParent(ALIVE));
  const { start, faults } = await load(role);
  reportFaultsTo((error, unit) => faults.recordContained(error, unit));
  const stop = await start(await optionsFromParent()).catch((error: Error) => {
    processLog().error({ event: "process_cannot_start" }, `the ${role} cannot start: ${error.message}`);
    process.exit(error instanceof CannotStart ? EXIT_CANNOT_START : EXIT_TRY_AGAIN);
  });
  process.off("disconnect", leaveUnstarted);
  // Not earlier: a failed start must end the process, and is retried.
  surviveAll((error) => faults.recordUncontained(error));
  let isStopping = false;
  const leave = (forGood: boolean) => {
    if (isStopping) return;
    isStopping = true;
    sayToParent("leaving");
    if (role === "controller") setTimeout(() => process.exit(1), CONTROLLER_LEAVES_MS_MAX).unref();
    stop(forGood).then(
      () => process.exit(0),
      (error: Error) => {
        processLog().error({ event: "stop_failed", err: error }, `the ${role} did not stop cleanly`);
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", () => leave(true));
  // The parent is gone. Jobs and replicas continue under the next one.
  process.on("disconnect", () => leave(false));
  if (process.connected) sayToParent("ready");
  else leave(false);
}

function load(role: ChildRole): Promise<ChildModule> {
  return role === "controller" ? import("./controller-child.ts") : import("./gateway-child.ts");
}

/** Resolves to the parent's first message. */
function optionsFromParent(): Promise<string> {
  return new Promise((resolve) =>
    process.on("message", (message) => {
      if (typeof message === "string") resolve(message);
    }),
  );
}

function sayToParent(word: "ready" | "leaving" | typeof ALIVE): void {
  // The parent may go away at this moment; "disconnect" reports that.
  if (process.connected) process.send!(word, () => {});
}
