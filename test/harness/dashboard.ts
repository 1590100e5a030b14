/** The dashboard of the build that the tests run; a checkout that was built without it gets the smallest one. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./server.ts";

const directory = join(root, "dist", "dashboard");

export function ensureDashboard(): void {
  if (existsSync(join(directory, "index.html"))) return;
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    join(directory, "index.html"),
    '<!doctype html><html lang="en"><title>Quern</title><script type="module" src="./app.js"></script></html>\n',
  );
}
