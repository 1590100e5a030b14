/**
 * The main job on real input, from nothing: a server on a free port with a fresh data directory, an API and a job over
 * 150 iris flowers, everything through the public command line. Each command is shown as it can be repeated.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, setUp } from "./setup.mjs";

/** A package that is installed elsewhere, or this checkout. */
const home = process.argv[2] ?? root;
if (home === root) setUp();

const work = mkdtempSync(join(tmpdir(), "quern-demo-"));
const example = join(home, "examples", "iris");
const results = join(work, "results");
const env = { ...process.env, QUERN_DATA_DIR: join(work, "data") };
delete env.QUERN_HOST;
const quern = join(home, "bin", "quern");
const shown = (args) => args.map((arg) => (/[^\w./:=-]/.test(arg) ? JSON.stringify(arg) : arg)).join(" ");

/** Shows a command, runs it, and returns what it printed. */
function command(args, capture = false) {
  console.log(`\n$ bin/quern ${shown(args)}`);
  const result = spawnSync(process.execPath, [quern, ...args], {
    cwd: home,
    env,
    encoding: "utf8",
    stdio: ["ignore", capture ? "pipe" : "inherit", "inherit"],
  });
  if (capture) process.stdout.write(result.stdout);
  if (result.status !== 0) throw new Error(`the command failed with exit code ${result.status}`);
  return result.stdout?.trim();
}

async function startServer() {
  const args = ["up", "--listen", "127.0.0.1:0", "--allow-local-root", example];
  console.log(`$ export QUERN_DATA_DIR=${env.QUERN_DATA_DIR}\n$ bin/quern ${shown(args)} &`);
  const server = spawn(process.execPath, [quern, ...args], {
    cwd: home,
    env,
    stdio: ["ignore", "inherit", "pipe"],
  });
  await new Promise((resolve, reject) => {
    server.stderr.on("data", (text) => {
      process.stderr.write(text);
      if (String(text).includes("quern is ready")) resolve();
    });
    server.once("exit", (code) => reject(new Error(`the server ended with ${code} before it was ready`)));
  });
  return server;
}

function showResults() {
  const batches = readdirSync(results).sort(
    (a, b) => Number(a.match(/(\d+)\.json$/)[1]) - Number(b.match(/(\d+)\.json$/)[1]),
  );
  const predictions = batches.flatMap((file) => JSON.parse(readFileSync(join(results, file), "utf8")));
  const flowers = readFileSync(join(example, "iris.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const right = predictions.filter((prediction, i) => prediction === flowers[i].species).length;
  console.log(`\nThe first predictions of ${predictions.length}, from ${results}:`);
  for (const [i, prediction] of predictions.slice(0, 5).entries()) {
    const { species, ...features } = flowers[i];
    console.log(
      `  ${JSON.stringify(features)} -> ${prediction}${prediction === species ? "" : ` (in truth ${species})`}`,
    );
  }
  console.log(`${right} of ${predictions.length} are right.`);
}

let server;
let failure;
try {
  mkdirSync(results);
  server = await startServer();
  command(["deploy", "examples/iris", "--wait"]);
  command(["get"]);
  command(["predict", "iris", "examples/iris/flower.json"]);
  const submission = join(work, "job.json");
  const job = {
    workers: 2,
    config: { results_dir: results, pace: 0.1 },
    delimited_files: { store_paths: [`file://${example}/iris.jsonl`], batch_size: 5 },
  };
  writeFileSync(submission, JSON.stringify(job, null, 2));
  console.log(`\n$ cat ${submission}\n${readFileSync(submission, "utf8")}`);
  const jobId = command(["job", "submit", "iris-batch", submission], true);
  command(["job", "wait", "iris-batch", jobId]);
  showResults();
} catch (error) {
  failure = error;
  console.error(`\nThe demo failed: ${error.message}`);
} finally {
  if (server !== undefined && server.exitCode === null) {
    console.log("\nstopping the server ...");
    const exited = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGTERM");
    await exited;
  }
  if (existsSync(work)) rmSync(work, { recursive: true, force: true });
}
process.exit(failure === undefined ? 0 : 1);
