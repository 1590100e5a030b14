/**
 * The entry of gateway and controller, which the parent starts: options by message, stop by SIGTERM or its death. Each loads its own
 * modules only (gateway-child.ts, controller-child.ts): to load those of the other took a fifth of a start.
 */
import { reportFaultsTo, surviveAll } from "./base/boundary.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import type { FaultLog } from "./observe/fault-log.ts";
import { outliveReaders, say } from "./observe/words.ts";
import { type ChildRole, EXIT_CANNOT_START, EXIT_TRY_AGAIN } from "./supervised-child.ts";

/** Twice what batches in hand have. A dead parent ends nobody, and a controller may wait for what never comes, such as room on the disk. */
const CONTROLLER_LEAVES_MS_MAX = 20_000;

/** Starts what the child is there for; resolves to what stops it. */
export type StartRole = (options: string) => Promise<(forGood: boolean) => Promise<void>>;

interface ChildModule {
  start: StartRole;
  /** Where faults of this process are logged. */
  faults: FaultLog;
}

export async function runChild(role: ChildRole): Promise<void> {
  process.on("SIGINT", () => {});
  outliveReaders();
  // A start may wait for long, for room on the disk; without the parent it would wait for nobody.
  const leaveUnstarted = () => process.exit(0);
  process.once("disconnect", leaveUnstarted);
  const { start, faults } = await load(role);
  reportFaultsTo((error, unit) => faults.recordContained(error, unit));
  const stop = await start(await optionsFromParent()).catch((error: Error) => {
    say(`quern: the ${role} cannot start: ${error.message}`);
    process.exit(error instanceof CannotStart ? EXIT_CANNOT_START : EXIT_TRY_AGAIN);
  });
  process.off("disconnect", leaveUnstarted);
  // Not before: a start that fails is to end, and is tried again.
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
        say(`quern: the ${role} did not stop cleanly: ${error.stack}`);
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", () => leave(true));
  // The parent is gone: jobs and replicas go on with the next one.
  process.on("disconnect", () => leave(false));
  if (process.connected) sayToParent("ready");
  else leave(false);
}

function load(role: ChildRole): Promise<ChildModule> {
  return role === "controller" ? import("./controller-child.ts") : import("./gateway-child.ts");
}

/** Its first message; from then on it asks now and then whether we still answer. */
function optionsFromParent(): Promise<string> {
  return new Promise((resolve) =>
    process.on("message", (message) => {
      if (message === "ping") sayToParent("pong");
      else if (typeof message === "string") resolve(message);
    }),
  );
}

function sayToParent(word: "ready" | "leaving" | "pong"): void {
  // It may be gone this very moment, which "disconnect" tells.
  if (process.connected) process.send!(word, () => {});
}
