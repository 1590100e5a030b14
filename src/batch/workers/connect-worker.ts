/** Connects to a worker process that was just started, as soon as it listens. */
import { delay } from "../../base/clock.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import { mayListen } from "../../protocol/may-listen.ts";
import { WorkerConnection, type WorkerConnectionEvents } from "../../protocol/worker-connection.ts";

const CONNECT_RETRY_MS = 5;

/** `gone`: aborted when the worker is gone; the result is then undefined. */
export async function connectWorker(
  { address, identity }: RunningWorker,
  epoch: number,
  events: WorkerConnectionEvents,
  gone: AbortSignal,
): Promise<WorkerConnection | undefined> {
  const hello = { role: "controller", token: identity.token, epoch } as const;
  while (!gone.aborted) {
    if (mayListen(address)) {
      const connection = await WorkerConnection.open(address, hello, events).catch(() => undefined);
      if (connection !== undefined) return connection;
    }
    await delay(CONNECT_RETRY_MS);
  }
  return undefined;
}
