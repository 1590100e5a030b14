/**
 * `npm run check`: format, lint, types and dead code of both languages, and all tests that need neither a kernel of
 * their own nor TensorFlow.
 * `npm run check -- --static` needs no server and takes under a minute. It runs only the house rules of the tests.
 */
import { join } from "node:path";
import { checkPython } from "./python-tools.mjs";
import { root, run, setUp } from "./setup.mjs";

setUp();
const bin = (name) => join(root, "node_modules", ".bin", name);
run(bin("biome"), ["check", "--error-on-warnings", "."]);
run(bin("tsc"), ["-p", "tsconfig.json"]);
run(bin("tsc"), ["-p", "src/dashboard"]);
// Finds promises without error handling, also in callbacks, which Biome's own rule does not see.
run(bin("oxlint"), ["--type-aware", "--quiet", "src"]);
run(bin("knip"), ["--no-progress"]);
checkPython();
if (process.argv.includes("--static"))
  run(bin("vitest"), ["run", "--configLoader=runner", "test/tidy.test.ts"]);
else run(process.execPath, ["scripts/test.mjs"]);
