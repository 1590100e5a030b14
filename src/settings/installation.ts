/** This installation of Quern: its release, and where its Python runtime is. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../contracts/package-root.ts";

export const pythonRuntimeDir = join(packageRoot, "python");

export function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string }).version;
}
