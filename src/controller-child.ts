/** What a controller's process runs (child.ts). */
import type { StartRole } from "./child.ts";
import { startController } from "./controller.ts";
import type { ControllerOptions } from "./controller-rooms.ts";
import { serverEnvironment } from "./settings.ts";

export const start: StartRole = async (options) => {
  const controller = await startController({
    ...(JSON.parse(options) as ControllerOptions),
    serverEnv: serverEnvironment,
  });
  return (forGood) => controller.stop(forGood);
};
