/**
 * The port of the listener for user code (docs/decisions/0023-calls-from-user-code.md). It stays the same over restarts if it is still free:
 * workers that live on have it in their environment.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PORT_MAX = 65_535;

/** 0, which is any free one, if there was none. */
export function formerApiPort(dataDir: string): number {
  try {
    const port = Number(readFileSync(file(dataDir), "utf8"));
    return Number.isInteger(port) && port > 0 && port <= PORT_MAX ? port : 0;
  } catch {
    return 0;
  }
}

export function rememberApiPort(dataDir: string, port: number): void {
  writeFileSync(`${file(dataDir)}.new`, `${port}\n`, { mode: 0o600 });
  renameSync(`${file(dataDir)}.new`, file(dataDir));
}

export function forgetApiPort(dataDir: string): void {
  rmSync(file(dataDir), { force: true });
}

function file(dataDir: string): string {
  return join(dataDir, "api-port");
}
