/** Runs in a controller's process (child.ts). */
import { processLog, setLogLevel } from "./base/log.ts";
import type { StartRole } from "./child.ts";
import type { StandbyMessage } from "./contracts/messages.ts";
import { startController } from "./controller/controller.ts";
import { FaultLog } from "./observe/fault-log.ts";
import { readChildOptions } from "./settings/child-options.ts";
import { serverEnvironment } from "./settings/environment.ts";

export const faults = new FaultLog(({ level, msg, ...line }) => processLog()[level](line, msg));

export const start: StartRole = async (message) => {
  const options = readChildOptions(message);
  setLogLevel(options.logLevel);
  const controller = await startController({
    ...options,
    serverEnv: serverEnvironment,
    onStandby: (standby) => {
      if (process.connected) process.send!({ standby } satisfies StandbyMessage, () => {});
    },
  });
  return (forGood) => controller.stop(forGood);
};
