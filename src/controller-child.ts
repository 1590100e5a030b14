/** What a controller's process runs (child.ts). */
import { openLog } from "./base/log.ts";
import type { StartRole } from "./child.ts";
import { hideInText } from "./contracts/secrets.ts";
import { startController } from "./controller.ts";
import type { ControllerOptions } from "./controller-rooms.ts";
import { FaultLog } from "./observe/fault-log.ts";
import { serverEnvironment } from "./settings.ts";

const log = openLog("controller", undefined, hideInText);
export const faults = new FaultLog(({ level, msg, ...line }) => log[level](line, msg));

export const start: StartRole = async (options) => {
  const controller = await startController({
    ...(JSON.parse(options) as ControllerOptions),
    serverEnv: serverEnvironment,
  });
  return (forGood) => controller.stop(forGood);
};
