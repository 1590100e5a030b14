/** The entry of gateway and controller, which the parent starts: options by message, stop by SIGTERM or its death. */
import type { Socket } from "node:net";
import { startController } from "./controller.ts";
import type { ControllerOptions } from "./controller-rooms.ts";
import { Gateway, type GatewayOptions } from "./gateway/server.ts";
import { serverEnvironment } from "./settings.ts";
import { type ChildRole, EXIT_CANNOT_START } from "./up.ts";

/** The descriptor behind stdin, stdout, stderr and the channel to the parent. */
const LISTENING_FD = 4;
const CONTROL_FD = 5;

export async function runChild(role: ChildRole): Promise<void> {
  process.on("SIGINT", () => {});
  const options = await new Promise<string>((resolve) =>
    process.once("message", (text) => resolve(text as string)),
  );
  const stop = await start(role, options).catch((error: Error) => {
    process.stderr.write(`quern: the ${role} cannot start: ${error.message}\n`);
    process.exit(EXIT_CANNOT_START);
  });
  let isStopping = false;
  const leave = (forGood: boolean) => {
    if (isStopping) return;
    isStopping = true;
    if (process.connected) process.send!("leaving");
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
  if (process.connected) process.send!("ready");
  else leave(false);
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
  const gateway = new Gateway({ ...parsed, listen: listenOn(LISTENING_FD), controlListen });
  await gateway.start();
  process.on("message", ({ listener }: { listener: number }, socket) => {
    // The client may have left on the way here.
    if (socket !== undefined) gateway.accept(socket as Socket, listener);
  });
  return () => gateway.stop();
}
