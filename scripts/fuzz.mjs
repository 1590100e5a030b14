/** `npm run fuzz`: compiles the fuzzer beside the server and runs it. */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { root, run, setUp } from "./setup.mjs";

setUp();
const out = join(root, ".bench", "js");
run(join(root, "node_modules", ".bin", "tsc"), ["-p", "tsconfig.json", "--noEmit", "false", "--outDir", out]);
// The validator of lines looks for its program beside its own compiled file.
mkdirSync(join(out, "dist"), { recursive: true });
copyFileSync(join(root, "dist", "json-lines.wasm"), join(out, "dist", "json-lines.wasm"));
run(process.execPath, [join(out, "test", "fuzz", "run.js"), ...process.argv.slice(2)]);
