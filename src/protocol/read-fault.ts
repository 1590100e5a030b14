/** Reads a fault that a worker sent, without trusting it. An unreadable one becomes a fault that says so. */
import { isMap, parseJson } from "./loose-json.ts";
import type { WorkerFault } from "./messages.ts";

/** The fault; if the bytes are not a fault, an `UnreadableFault`. */
export function readFault(bytes: Buffer): WorkerFault {
  const found = parseJson(bytes);
  if (!isMap(found)) return unreadable(bytes);
  const { stage, type, message, traceback, status_code, detail } = found;
  if ([stage, type, message, traceback].some((field) => typeof field !== "string")) return unreadable(bytes);
  const fault = { stage, type, message, traceback } as WorkerFault;
  if (!isErrorStatus(status_code)) return fault;
  return { ...fault, status_code, detail };
}

/** In one line, for a status or a message. */
export function describeFault({ type, message }: Pick<WorkerFault, "type" | "message">): string {
  return message === "" ? type : `${type}: ${message}`;
}

function unreadable(bytes: Buffer): WorkerFault {
  const beginning = bytes.toString("utf8", 0, 200);
  return {
    stage: "predict",
    type: "UnreadableFault",
    message: `the worker's report of a failure cannot be read; it begins with ${JSON.stringify(beginning)}`,
    traceback: "",
  };
}

function isErrorStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599;
}
