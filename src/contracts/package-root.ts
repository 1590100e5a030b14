/** The directory where this package is installed. Files that it ships besides its modules are found from there. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Two directories up from a room. This is also right for `dist/bundle/`, where the modules are not in rooms
 * (scripts/bundle.mjs).
 */
export const packageRoot = resolve(fileURLToPath(new URL("../..", import.meta.url)));
