/** The file in which the command line finds the control plane of this data directory's server. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { addressFile } from "../contracts/data-layout.ts";

/** Renames the file into place, so that nobody reads half of it. */
export function writeAddress(dataDir: string, url: string): void {
  const file = addressFile(dataDir);
  writeFileSync(`${file}.new`, `${url}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Removes the address, because another program may listen there later. */
export function forgetAddress(dataDir: string): void {
  try {
    rmSync(addressFile(dataDir), { force: true });
  } catch {
    // A stale address does no harm: the command line asks every server for a proof.
  }
}
