/** What a pod's launcher tells about its worker, over HTTP (docs/pods.md#health). */
import { request } from "node:http";
import { delay } from "../../base/clock.ts";
import {
  LAST_EXIT_POLL_MS,
  LAST_EXIT_WAIT_MS,
  LAUNCHER_RESPONSE_BYTES_MAX,
  LAUNCHER_SILENT_MAX_MS,
} from "../../contracts/limits/kubernetes/pods.ts";

/** How the last process of a worker ended. */
export interface LastExit {
  code?: number;
  signal?: string;
  out_of_memory?: boolean;
  with_container?: boolean;
  peak_memory_bytes?: number;
  last_lines?: string[];
  note?: LauncherNote | null;
}

/** The batch or request that a worker has, or had, in hand (docs/worker-protocol.md#the-note). */
export interface LauncherNote {
  epoch: number;
  connection: number;
  delivery: number;
  batch_index: number;
  busy: boolean;
}

/** Why the pod cannot run a worker yet. It is tried again. */
export interface LauncherFailure {
  message: string;
  /** Trying again does not help, unless something else changes. */
  is_final: boolean;
  is_of_environment: boolean;
  step: string | null;
  output: string[];
  python: string | null;
  /** For how many seconds it has failed. */
  for_s: number;
}

export interface LauncherFacts {
  state: string;
  reason: string | null;
  /** Absent in an image of an older release. */
  failure?: LauncherFailure | null;
  starts: number;
  /** The worker's process; null between two of them. */
  pid: number | null;
  last_exit: LastExit | null;
  note: LauncherNote | null;
}

/** Where a launcher answers. */
export interface LauncherAt {
  host: string;
  port: number;
  token: string;
}

/** So long that it is told, and not so long that it ends a job. */
const UNKNOWN_FOR_S = 60;

/** What a launcher says, which user code may have changed. Undefined if it is something else. Pure. */
export function readFacts(text: string): LauncherFacts | undefined {
  const facts = JSON.parse(text) as LauncherFacts | null;
  if (typeof facts?.starts !== "number" || typeof facts.state !== "string") return undefined;
  const { failure, state, pid, reason } = facts;
  if (failure === undefined && state === "failed" && pid === null)
    return { ...facts, failure: ofOlderRelease(reason) };
  return failure === undefined || failure === null || isFailure(failure) ? facts : undefined;
}

function isFailure({ message, is_final, is_of_environment, step, output, python, for_s }: LauncherFailure) {
  const texts = [step, python].every((text) => text === null || typeof text === "string");
  const flags = typeof is_final === "boolean" && typeof is_of_environment === "boolean";
  const lines = Array.isArray(output) && output.every((line) => typeof line === "string");
  return typeof message === "string" && typeof for_s === "number" && texts && flags && lines;
}

function ofOlderRelease(reason: string | null): LauncherFailure {
  const said = { message: reason ?? "it failed", is_final: false, for_s: UNKNOWN_FOR_S };
  return { ...said, is_of_environment: false, step: null, output: [], python: null };
}

/** Undefined if it does not answer, or with something else. */
export async function launcherFacts({ host, port, token }: LauncherAt): Promise<LauncherFacts | undefined> {
  try {
    return readFacts(await get({ host, port, path: "/worker", token }));
  } catch {
    return undefined;
  }
}

/**
 * Sends a signal to the worker's process `pid`. False if another one is the worker now, or if the launcher does not
 * answer.
 */
export async function signalWorker(
  { host, port, token }: LauncherAt,
  pid: number,
  signal: "SIGTERM" | "SIGKILL",
): Promise<boolean> {
  try {
    const path = `/worker?pid=${pid}&signal=${signal}`;
    const text = await get({ method: "DELETE", host, port, path, token });
    return (JSON.parse(text) as { signalled?: boolean }).signalled === true;
  } catch {
    return false;
  }
}

/**
 * How the worker's process `pid` ended. The launcher needs a moment to notice, and a container that ended with its
 * worker begins again. Undefined if it does not answer in time: then the pod is gone, and the cluster says why.
 */
export async function lastExitOf(pid: number, launcher: LauncherAt): Promise<LastExit | undefined> {
  const endMs = performance.now() + LAST_EXIT_WAIT_MS;
  do {
    const facts = await launcherFacts(launcher);
    if (facts !== undefined && facts.pid !== pid) return facts.last_exit ?? undefined;
    await delay(LAST_EXIT_POLL_MS);
  } while (performance.now() < endMs);
  return undefined;
}

function get({
  token,
  ...where
}: {
  method?: "DELETE";
  host: string;
  port: number;
  path: string;
  token?: string;
}): Promise<string> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request({ ...where, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
        if (text.length > LAUNCHER_RESPONSE_BYTES_MAX) sent.destroy(new Error("the response is too long"));
      });
      response.on("end", () => resolve(text)).on("error", reject);
    });
    const timer = setTimeout(() => sent.destroy(new Error("no response")), LAUNCHER_SILENT_MAX_MS);
    sent.on("error", reject).on("close", () => clearTimeout(timer));
    sent.end();
  });
}
