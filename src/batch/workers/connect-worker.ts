/** Connects to a worker process of a job, as soon as it listens. */
import { delay } from "../../base/clock.ts";
import { WARM_REPLY_MS } from "../../contracts/limits/jobs.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import { mayListen } from "../../protocol/may-listen.ts";
import { WorkerConnection, type WorkerConnectionEvents } from "../../protocol/worker-connection.ts";

const CONNECT_RETRY_MS = 5;
/** Of a worker in a pod, where each try takes more. */
const CONNECT_TLS_RETRY_MS = 50;

interface While {
  /** Aborted when the worker is gone; there is no connection then. */
  gone: AbortSignal;
  /**
   * For a process that waits for this job: it would reply at once, had a former job not left it unable to. Called after
   * WARM_REPLY_MS.
   */
  onNoReply: (() => void) | undefined;
}

export async function connectWorker(
  process: RunningWorker,
  epoch: number,
  events: WorkerConnectionEvents,
  { gone, onNoReply }: While,
): Promise<WorkerConnection | undefined> {
  const limit = onNoReply && setTimeout(() => gone.aborted || onNoReply(), WARM_REPLY_MS);
  const connection = await untilConnected(process, epoch, events, gone);
  clearTimeout(limit);
  return connection;
}

async function untilConnected(
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
    await delay("tls" in address ? CONNECT_TLS_RETRY_MS : CONNECT_RETRY_MS);
  }
  return undefined;
}
