/** The gateway's log of its own 5xx responses. One instance per process. */
import { processLog } from "../../base/log.ts";
import { FaultLog } from "../../observe/fault-log.ts";

export const ownFaults = new FaultLog(({ level, msg, ...line }) => processLog()[level](line, msg));
