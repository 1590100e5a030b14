/** `npm run format`: formats both languages, and fixes what the linters can fix. */
import { join } from "node:path";
import { formatPython } from "./python-tools.mjs";
import { root, run } from "./setup.mjs";

run(join(root, "node_modules", ".bin", "biome"), ["check", "--write", "."]);
formatPython();
