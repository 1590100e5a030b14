/** The entry of gateway and controller, which the parent starts: options by message, stop by SIGTERM or its death. */
import type { Socket } from "node:net";
import { CannotStart } from "./contracts/cannot-start.ts";
import { startController } from "./controller.ts";
import type { ControllerOptions } from "./controller-rooms.ts";
import { Gateway, type GatewayOptions } from "./gateway/server.ts";
import { serverEnvironment } from "./settings.ts";
import { type ChildRole, EXIT_CANNOT_START, EXIT_TRY_AGAIN } from "./supervised-child.ts";

/** The descriptor behind stdin, stdout, stderr and the channel to the parent. */
const LISTENING_FD = 4;
const CONTROL_FD = 5;

export async function runChild(role: ChildRole): Promise<void> {
  process.on("SIGINT", () => {});
  process.stderr.on("error", () => {});
  // A start may wait for long, for room on the disk; without the parent it would wait for nobody.
  const leaveUnstarted = () => process.exit(0);
  process.once("disconnect", leaveUnstarted);
  const stop = await start(role, await optionsFromParent()).catch((error: Error) => {
    process.stderr.write(`quern: the ${role} cannot start: ${error.message}\n`);
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
        process.stderr.write(`quern: the ${role} did not stop cleanly: ${error.stack}\n`);
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

async function start(role: ChildRole, options: string): Promise<(forGood: boolean) => Promise<void>> {
  if (role === "controller") {
    const controller = await startController({
      ...(JSON.parse(options) as ControllerOptions),
      serverEnv: serverEnvironment,
    });
    return (forGood) => controller.stop(forGood);
  }
  const parsed = JSON.parse(options) as GatewayOptions & { hasControlListener: boolean };
  const isDealt = parsed.gateways > 1;
  const listenOn = (fd: number) => (isDealt ? ("parent" as const) : { fd });
  const controlListen = parsed.hasControlListener ? listenOn(CONTROL_FD) : undefined;
  const gateway = openGateway({ ...parsed, listen: listenOn(LISTENING_FD), controlListen });
  await gateway.start();
  process.on("message", (message, socket) => {
    // The client may have left on the way here.
    if (socket !== undefined) gateway.accept(socket as Socket, (message as { listener: number }).listener);
  });
  return () => gateway.stop();
}

/** It reads the files that options name: certificates and credentials. */
function openGateway(options: GatewayOptions): Gateway {
  try {
    return new Gateway(options);
  } catch (error) {
    throw new CannotStart("option_unusable", (error as Error).message, error);
  }
}
