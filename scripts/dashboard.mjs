/**
 * Builds the dashboard's pages (src/dashboard/) into dist/dashboard/: scripts and styles under names with a hash of
 * their contents, each beside copies that are compressed already, and index.html with these names. The pages load
 * nothing else. It fails if they are larger than SIZE_MAX.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./setup.mjs";

/** Bytes of all scripts and styles after gzip. */
const SIZE_MAX = 80 * 1024;
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const from = join(root, "src", "dashboard");
const to = join(root, "dist", "dashboard");
let size = 0;

/**
 * Bundles one entry; returns the name of its file, and those of the parts that it needs at once. The parts that it loads
 * later get files of their own.
 */
async function bundle(entry, more = {}) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(from, entry)],
    outdir: to,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    target: ["chrome111", "firefox113", "safari16.4"],
    logLevel: "warning",
    tsconfig: join(from, "tsconfig.json"),
    ...more,
  });
  for (const { path, contents } of outputFiles) write(path, contents);
  const [made, { imports }] = Object.entries(metafile.outputs).find(([, { entryPoint }]) =>
    entryPoint?.endsWith(entry),
  );
  const parts = imports.filter(({ kind }) => kind === "import-statement");
  return { name: basename(made), parts: parts.map(({ path }) => basename(path)) };
}

function write(path, contents) {
  const gzip = gzipSync(contents, { level: 9 });
  writeFileSync(path, contents);
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, brotliCompressSync(contents));
  size += gzip.length;
}

rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
const worker = await bundle("live/stream-worker.ts");
const made = {
  script: await bundle("dashboard.tsx", {
    splitting: true,
    define: { STREAM_WORKER: JSON.stringify(worker.name) },
  }),
  theme: await bundle("session/set-theme.ts", { format: "iife" }),
  styles: await bundle("styles/dashboard.css"),
  icon: await bundle("icon.svg", { loader: { ".svg": "copy" } }),
};
const preloads = made.script.parts.map((part) => `<link rel="modulepreload" href="./${part}" />`);
const page = readFileSync(join(from, "index.html"), "utf8")
  .replace("PRELOADS", preloads.join("\n    "))
  .replace(/FILE\((\w+)\)/g, (_, entry) => made[entry].name);
writeFileSync(join(to, "index.html"), page);
const notices = BUNDLED.map(
  (name) => `${name}\n\n${readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8")}`,
);
writeFileSync(join(to, "LICENSES.txt"), notices.join("\n\n"));
if (size > SIZE_MAX)
  throw new Error(`the dashboard has ${size} bytes after gzip; at most ${SIZE_MAX} are allowed`);
console.log(`dashboard: ${(size / 1024).toFixed(1)} KiB after gzip`);
