/** `npm run chaos`: compiles the random kills beside the server and runs them. */
import { join } from "node:path";
import { root, run, setUp } from "./setup.mjs";

setUp();
const out = join(root, ".bench", "js");
run(join(root, "node_modules", ".bin", "tsc"), ["-p", "tsconfig.json", "--noEmit", "false", "--outDir", out]);
run(process.execPath, [join(out, "test", "chaos", "run.js"), ...process.argv.slice(2)]);
