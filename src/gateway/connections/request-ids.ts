/** The id of each response (docs/contract/errors.md#request-id): the caller's own if it is valid, else a new one. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

const VALID = /^[\w.:/+=@-]{1,128}$/;

/** Different in each gateway, and after each restart. */
const ofThisProcess = randomBytes(6).toString("hex");
let made = 0;

export function requestIdOf({ headers }: Pick<IncomingMessage, "headers">): string {
  const own = headers["x-request-id"];
  return typeof own === "string" && VALID.test(own) ? own : newRequestId();
}

/** For a response to what could not be read as a request. */
export function newRequestId(): string {
  return `${ofThisProcess}-${(made++).toString(36)}`;
}
