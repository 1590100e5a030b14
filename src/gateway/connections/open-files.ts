/** How many of the files that this process may open connections may take. */

import { CONNECTIONS_MAX, TLS_CONNECTIONS_MAX } from "../../contracts/limits/requests.ts";
import { openFilesMax } from "../../observe/open-files.ts";

/**
 * A third of the files: each connection may have one request that is forwarded, which takes a second one. The others are
 * for workers, responses that are not read, and log files.
 */
export function connectionsMax(hasTls: boolean): number {
  return Math.min(hasTls ? TLS_CONNECTIONS_MAX : CONNECTIONS_MAX, Math.floor(openFilesMax() / 3));
}

/** Forwarded responses that are not read: a quarter of the files, because clients may pipeline them. */
export function unreadForwardedMax(): number {
  return Math.floor(openFilesMax() / 4);
}
