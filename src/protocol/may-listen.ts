/** Whether a worker that has just been started may listen already. */
import { existsSync } from "node:fs";
import type { WorkerAddress } from "./connect-socket.ts";

/** Python takes twenty tries to start, and each connection that fails takes half a megabyte of buffers. */
export function mayListen(address: WorkerAddress): boolean {
  return !("path" in address) || existsSync(address.path);
}
