/**
 * Builds the dashboard's pages (src/dashboard/) into dist/dashboard/: scripts and styles under names with a hash of
 * their contents, each beside copies that are compressed already, and index.html with these names. The pages load
 * nothing else. It fails if they are larger than SIZE_MAX.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./setup.mjs";

/** Bytes of all scripts and styles after gzip. */
const SIZE_MAX = 80 * 1024;
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const from = join(root, "src", "dashboard");
const to = join(root, "dist", "dashboard");

const options = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  write: false,
  target: ["chrome111", "firefox113", "safari16.4"],
  logLevel: "warning",
  tsconfig: join(from, "tsconfig.json"),
};

async function bundled(entry, more) {
  const { outputFiles } = await build({
    ...options,
    entryPoints: [join(from, entry)],
    outfile: join(to, basename(entry)),
    ...more,
  });
  return outputFiles[0].contents;
}

const written = new Map();
let size = 0;

/** Writes a file under its name with a hash, and returns that. */
function write(name, contents) {
  const hash = createHash("sha256").update(contents).digest("hex").slice(0, 8).toUpperCase();
  const hashed = `${basename(name, extname(name))}-${hash}${extname(name)}`;
  const gzip = gzipSync(contents, { level: 9 });
  writeFileSync(join(to, hashed), contents);
  writeFileSync(join(to, `${hashed}.gz`), gzip);
  writeFileSync(join(to, `${hashed}.br`), brotliCompressSync(contents));
  written.set(name, hashed);
  size += gzip.length;
  return hashed;
}

rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
const worker = write("stream.js", await bundled("live/stream-worker.ts", { format: "esm" }));
write(
  "dashboard.js",
  await bundled("dashboard.tsx", { format: "esm", define: { STREAM_WORKER: JSON.stringify(worker) } }),
);
write("theme.js", await bundled("session/set-theme.ts", { format: "iife" }));
write("dashboard.css", await bundled("styles/dashboard.css"));
write("icon.svg", readFileSync(join(from, "icon.svg")));
const page = readFileSync(join(from, "index.html"), "utf8").replace(/FILE\(([^)]+)\)/g, (_, name) =>
  written.get(name),
);
writeFileSync(join(to, "index.html"), page);
const notices = BUNDLED.map(
  (name) => `${name}\n\n${readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8")}`,
);
writeFileSync(join(to, "LICENSES.txt"), notices.join("\n\n"));
if (size > SIZE_MAX)
  throw new Error(`the dashboard has ${size} bytes after gzip; at most ${SIZE_MAX} are allowed`);
console.log(`dashboard: ${(size / 1024).toFixed(1)} KiB after gzip`);
