/** `npm run bench`: compiles the benchmarks beside the server and runs them. */
import { join } from "node:path";
import { root, run, setUp } from "./setup.mjs";

setUp();
const out = join(root, ".bench", "js");
run(join(root, "node_modules", ".bin", "tsc"), ["-p", "tsconfig.json", "--noEmit", "false", "--outDir", out]);
run(process.execPath, [join(out, "bench", "run.js"), ...process.argv.slice(2)]);
