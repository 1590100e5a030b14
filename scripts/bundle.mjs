/**
 * Joins the modules of `dist/` into the few files of `dist/bundle/`, which `bin/quern` runs: finding and reading
 * hundreds of small ones took most of a start. Entries keep their names and lie side by side, because a module looks
 * for its programs in its own directory. Nothing is shortened or renamed: a stack shows the functions of the source,
 * and a comment in the bundle the module of each.
 *
 * `node scripts/bundle.mjs src` joins the sources instead, without a check of their types.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { root } from "./setup.mjs";

/** Packages with many files, of which a process needs few. All other packages stay as installed. */
const BUNDLED = ["pino", "zod", "yaml", "hono", "@hono/node-server", "@msgpack/msgpack", "commander"];

const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const packages = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
const dist = join(root, "dist");
const from = join(root, process.argv[2] ?? "dist");
const modules = readdirSync(from, { recursive: true }).filter((file) => !file.startsWith("bundle"));
const entries = modules.filter((file) => /^bin\.[jt]s$|-thread\.[jt]s$/.test(file));

rmSync(join(dist, "bundle"), { recursive: true, force: true });
const { metafile } = await build({
  metafile: true,
  entryPoints: entries.map((file) => join(from, file)),
  outdir: join(dist, "bundle"),
  entryNames: "[name]",
  absWorkingDir: root,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.12",
  external: packages.filter((name) => !BUNDLED.includes(name)),
  // yaml asks for its parts, and for Node's, by `require`.
  banner: {
    js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
  },
  logLevel: "warning",
});

// One `z.core` used as a value, and all of them are in the bundle again.
const isMessages = (file) => /zod\/v4\/locales\/(?!en\.)/.test(file);
if (Object.values(metafile.outputs).some(({ inputs }) => Object.keys(inputs).some(isMessages)))
  throw new Error("zod's messages in other languages are in the bundle: z.core is used as a value");

const joined = Object.keys(metafile.inputs).flatMap(
  (file) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
);
const notices = [...new Set(joined)].sort().map((directory) => {
  const license = readdirSync(join(root, directory)).find((file) => /^licen[cs]e/i.test(file));
  return `${directory.slice("node_modules/".length)}\n\n${readFileSync(join(root, directory, license), "utf8")}`;
});
writeFileSync(join(dist, "bundle", "LICENSES.txt"), notices.join("\n\n"));
