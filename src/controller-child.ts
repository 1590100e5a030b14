/** Runs in a controller's process (child.ts). */
import { openLog } from "./base/log.ts";
import type { StartRole } from "./child.ts";
import { hideInText } from "./contracts/secrets.ts";
import { startController } from "./controller/controller.ts";
import { FaultLog } from "./observe/fault-log.ts";
import { readChildOptions } from "./settings/child-options.ts";
import { serverEnvironment } from "./settings/environment.ts";

const log = openLog("controller", undefined, hideInText);
export const faults = new FaultLog(({ level, msg, ...line }) => log[level](line, msg));

export const start: StartRole = async (message) => {
  const controller = await startController({ ...readChildOptions(message), serverEnv: serverEnvironment });
  return (forGood) => controller.stop(forGood);
};
