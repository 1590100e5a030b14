/** How many files this process may open. Sockets are files. */
import { readdirSync, readFileSync } from "node:fs";

/** Infinite where the system does not say it in a file: macOS. Node has already raised the soft limit to the hard one. */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** How many this process has open; 0 where the system does not say it. */
export function openFilesCount(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}
