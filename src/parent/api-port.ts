/**
 * Keeps the port of the listener for user code (docs/decisions/0023-calls-from-user-code.md) across restarts, as long
 * as it is free. Workers that outlive a server have it in their environment.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { apiPortFile } from "../contracts/data-layout.ts";

const PORT_MAX = 65_535;

/** The former port; 0 if there was none, which means any free port. */
export function formerApiPort(dataDir: string): number {
  try {
    const port = Number(readFileSync(apiPortFile(dataDir), "utf8"));
    return Number.isInteger(port) && port > 0 && port <= PORT_MAX ? port : 0;
  } catch {
    return 0;
  }
}

export function rememberApiPort(dataDir: string, port: number): void {
  writeFileSync(`${apiPortFile(dataDir)}.new`, `${port}\n`, { mode: 0o600 });
  renameSync(`${apiPortFile(dataDir)}.new`, apiPortFile(dataDir));
}

export function forgetApiPort(dataDir: string): void {
  rmSync(apiPortFile(dataDir), { force: true });
}
