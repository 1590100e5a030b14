/**
 * Draws docs/images/quern.svg, the picture of the README: runs a real session on a server of its own, and shows what the
 * commands printed, line by line. `node scripts/picture.mjs`
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, setUp } from "./setup.mjs";

const LINE_PX = 20;
const MARGIN_PX = 24;
const WIDTH_PX = 860;

setUp();
const work = mkdtempSync(join(tmpdir(), "quern-picture-"));
const env = { ...process.env, QUERN_DATA_DIR: join(work, "data"), NO_COLOR: "1" };
delete env.QUERN_HOST;
const quern = join(root, "bin", "quern");
const server = await startServer();
try {
  writeFileSync(join(root, "docs", "images", "quern.svg"), svg(session()));
} finally {
  const exited = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await exited;
  rmSync(work, { recursive: true, force: true });
}

async function startServer() {
  const args = ["up", "--listen", "127.0.0.1:0", "--allow-local-root", join(root, "examples", "iris")];
  const started = spawn(process.execPath, [quern, ...args], { env, stdio: ["ignore", "ignore", "pipe"] });
  await new Promise((resolve, reject) => {
    started.stderr.on("data", (text) => String(text).includes("quern is ready") && resolve());
    started.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return started;
}

/** Lines as a terminal has them; commands begin with `$ `. */
function session() {
  const results = join(work, "results");
  mkdirSync(results);
  const job = join(work, "job.json");
  const store_paths = [`file://${join(root, "examples", "iris", "iris.jsonl")}`];
  const config = { results_dir: results, pace: 0.1 };
  writeFileSync(job, JSON.stringify({ workers: 2, config, delimited_files: { store_paths, batch_size: 5 } }));
  const lines = [
    ...command("deploy examples/iris --wait"),
    ...command("predict iris examples/iris/flower.json"),
    ...command("job submit iris-batch job.json", ["job", "submit", "iris-batch", job]),
  ];
  const id = lines.at(-2);
  const waited = command(`job wait iris-batch ${id}`);
  // The lines after the table are the job's configuration.
  return [...lines, ...waited.slice(0, waited.indexOf("batch stats") + 3), "…", "", ...command("get")];
}

/** Its output and progress, in the order of a terminal. */
function command(shown, args = shown.split(" ")) {
  const together = ["-c", 'exec "$0" "$@" 2>&1', process.execPath, quern, ...args];
  const { status, stdout } = spawnSync("sh", together, { cwd: root, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`quern ${shown} failed: ${stdout}`);
  return [`$ quern ${shown}`, ...stdout.trimEnd().split("\n"), ""];
}

function svg(lines) {
  const height = 2 * MARGIN_PX + lines.length * LINE_PX;
  const texts = lines.map((line, i) => {
    const kind = line.startsWith("$ ") ? ' class="command"' : "";
    return `<text x="${MARGIN_PX}" y="${MARGIN_PX + (i + 0.75) * LINE_PX}"${kind}>${escaped(line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH_PX}" height="${height}" viewBox="0 0 ${WIDTH_PX} ${height}" role="img">
<title>A terminal: an API and a job are deployed, a prediction is answered, a job runs to its end</title>
<style>
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c9d1d9; white-space: pre; }
.command { fill: #7ee787; font-weight: 600; }
</style>
<rect width="100%" height="100%" rx="10" fill="#0d1117"/>
${texts.join("\n")}
</svg>
`;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
