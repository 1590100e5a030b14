import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Two directories up from `src/config/`, and from `dist/bundle/` as well, where the modules lie without their rooms (scripts/bundle.mjs). */
export const packageRoot = resolve(fileURLToPath(new URL("../..", import.meta.url)));
