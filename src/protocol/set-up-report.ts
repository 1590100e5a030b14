/**
 * How a worker's set-up ended. It says so once, with READY or INIT_FAILED: each of them makes the controller publish
 * routes, write logs or end a job, so a worker that repeats them would occupy it.
 */
import { ProtocolError } from "./frame-rules.ts";
import { isMap, parseJson } from "./loose-json.ts";
import type { Ready } from "./messages.ts";

/** What a request has besides its payload. */
const WISHES: readonly unknown[] = ["query_params", "headers"];

export class SetUpReport {
  private hasCome = false;

  /** Throws if it has come before. */
  take(): void {
    if (this.hasCome) throw new ProtocolError("a worker reported the end of its set-up twice");
    this.hasCome = true;
  }
}

/**
 * Reads READY. Throws if a worker cannot say that: it becomes part of the routes, which are published for all APIs
 * together.
 */
export function readReady(body: Buffer): Ready {
  const ready = parseJson(body);
  if (!isReady(ready)) throw new ProtocolError("the READY does not say what the worker's class needs");
  return ready;
}

/** The same for a WELCOME of a worker that is ready. `has_on_job_complete` is for jobs, whose workers send a READY. */
export function isReady(value: unknown): value is Ready {
  if (!isMap(value)) return false;
  const { wants, is_async = false } = value;
  if (typeof is_async !== "boolean") return false;
  return Array.isArray(wants) && wants.length <= WISHES.length && wants.every((one) => WISHES.includes(one));
}
