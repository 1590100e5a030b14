/** Peers in environments of their own. */
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The `bin` of an environment with these packages, made once. */
export function install(directory: string, name: string, packages: readonly string[]): string {
  const environment = join(directory, name.toLowerCase().replace(/\W/g, ""));
  const bin = join(environment, "bin");
  const marker = join(environment, "installed");
  if (existsSync(marker)) return bin;
  console.log(`  installing ${packages.join(" ")} ...`);
  const run = (command: string, args: string[]) =>
    execFileSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  run("python3", ["-m", "venv", environment]);
  run(join(bin, "pip"), ["install", "-q", ...packages]);
  writeFileSync(marker, "");
  return bin;
}
