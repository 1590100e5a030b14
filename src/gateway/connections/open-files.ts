/** How many files this process may open, and how many of them connections may take. */
import { readFileSync } from "node:fs";
import { CONNECTIONS_MAX } from "../../contracts/limits/requests.ts";

/**
 * A third of the files: each connection may have one request that is forwarded, which takes a second one. The others are
 * for workers, responses that are not read, and log files.
 */
export function connectionsMax(): number {
  return Math.min(CONNECTIONS_MAX, Math.floor(openFilesMax() / 3));
}

/** Forwarded responses that are not read: a quarter of the files, because clients may pipeline them. */
export function unreadForwardedMax(): number {
  return Math.floor(openFilesMax() / 4);
}

/** Infinite where the system does not say it in a file: macOS. Node has already raised the soft limit to the hard one. */
function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
