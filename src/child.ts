/**
 * The entry of gateway and controller, which the parent starts: options by message, stop by SIGTERM or its death. Each loads its own
 * modules only (gateway-child.ts, controller-child.ts): to load those of the other took a fifth of a start.
 */
import { CannotStart } from "./contracts/cannot-start.ts";
import { outliveReaders, say } from "./observe/words.ts";
import { type ChildRole, EXIT_CANNOT_START, EXIT_TRY_AGAIN } from "./supervised-child.ts";

/** Starts what the child is there for; resolves to what stops it. */
export type StartRole = (options: string) => Promise<(forGood: boolean) => Promise<void>>;

export async function runChild(role: ChildRole): Promise<void> {
  process.on("SIGINT", () => {});
  outliveReaders();
  // A start may wait for long, for room on the disk; without the parent it would wait for nobody.
  const leaveUnstarted = () => process.exit(0);
  process.once("disconnect", leaveUnstarted);
  const start = await load(role);
  const stop = await start(await optionsFromParent()).catch((error: Error) => {
    say(`quern: the ${role} cannot start: ${error.message}`);
    process.exit(error instanceof CannotStart ? EXIT_CANNOT_START : EXIT_TRY_AGAIN);
  });
  process.off("disconnect", leaveUnstarted);
  let isStopping = false;
  const leave = (forGood: boolean) => {
    if (isStopping) return;
    isStopping = true;
    sayToParent("leaving");
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

async function load(role: ChildRole): Promise<StartRole> {
  if (role === "controller") return (await import("./controller-child.ts")).start;
  return (await import("./gateway-child.ts")).start;
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
