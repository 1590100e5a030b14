/** Where this package is installed: what it brings beside its modules is found from here. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Two directories up from a room, and from `dist/bundle/` as well, where the modules lie without their rooms (scripts/bundle.mjs). */
export const packageRoot = resolve(fileURLToPath(new URL("../..", import.meta.url)));
