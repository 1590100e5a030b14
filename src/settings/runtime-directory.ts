/** The runtime directory of a server: one for each data directory of a user. */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { runtimeParent } from "./environment.ts";

/**
 * A short directory for sockets and notes, because a path of a Unix socket over 107 bytes is silently truncated. Throws
 * if another user owns it.
 */
export function runtimeDirectory(dataDir: string): string {
  const id = createHash("sha256").update(resolve(dataDir)).digest("hex").slice(0, 8);
  const directory = join(runtimeParent(), `quern-${process.getuid!()}-${id}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const info = lstatSync(directory);
  if (!info.isDirectory() || info.uid !== process.getuid!() || (info.mode & 0o077) !== 0) {
    throw new Error(
      `${directory} must be a directory of yours with mode 0700; remove it, or set XDG_RUNTIME_DIR`,
    );
  }
  if (directory.length > 80)
    throw new Error(`${directory} is too long for sockets; set XDG_RUNTIME_DIR to a shorter directory`);
  return directory;
}
