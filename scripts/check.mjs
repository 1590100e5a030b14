/** `npm run check`: format, lint, types, dead code and all tests: the same as CI. */
import { join } from "node:path";
import { root, run, setUp } from "./setup.mjs";

setUp();
const bin = (name) => join(root, "node_modules", ".bin", name);
run(bin("biome"), ["check", "--error-on-warnings", "."]);
run(bin("tsc"), ["-p", "tsconfig.json"]);
// Promises whose failure nobody hears of, also in callbacks: Biome's own rule does not see those.
run(bin("oxlint"), ["--type-aware", "--quiet", "src"]);
run(bin("knip"), ["--no-progress"]);
if (!process.argv.includes("--static")) run(process.execPath, ["scripts/test.mjs"]);
