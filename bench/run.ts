/** `npm run bench [-- realtime|batch|databases|small-jobs|transport|dashboard|start|idle|files|beside|hostile|outputs|s3|peers|serving|applications …]`: ours, the bare limit and the peers, interleaved, medians of five. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { root, TestServer } from "../test/harness/server.ts";
import { benchApplications } from "./applications.ts";
import { benchBatch, benchTail } from "./batch.ts";
import { benchBeside } from "./beside.ts";
import { benchDashboard } from "./dashboard.ts";
import { benchDatabases } from "./databases.ts";
import { benchFiles, FILES_DIRECTORY } from "./files.ts";
import { benchHostile } from "./hostile.ts";
import { benchIdle } from "./idle.ts";
import { allHold, linesFile } from "./measure.ts";
import { benchOutputs } from "./outputs.ts";
import { benchPeers } from "./peers.ts";
import { benchRealtime } from "./realtime.ts";
import { benchS3 } from "./s3.ts";
import { benchServing } from "./serving.ts";
import { benchSmallJobs } from "./small-jobs.ts";
import { benchStart } from "./start.ts";
import { benchTransport } from "./transport.ts";

const ROUNDS = 5;
const NOOP = `
import time
class PythonPredictor:
    def __init__(self, config):
        self.config = config if "slow_id" in config else None
    def predict(self, payload):
        if self.config is not None and isinstance(payload, list):
            time.sleep(self.config["slow_s"] if payload[0]["id"] == self.config["slow_id"] else self.config["short_s"])
        return "setosa"
`;

const chosen = process.argv.slice(2).filter((name) => !name.startsWith("--"));
const wants = (name: string) => chosen.length === 0 || chosen.includes(name);
/** The number in an argument `--NAME=NUMBER`. */
const scaled = (name: string, usual: number) =>
  Number(process.argv.find((argument) => argument.startsWith(`--${name}=`))?.split("=")[1] ?? usual);
const directory = join(root, ".bench");
mkdirSync(directory, { recursive: true });

if (wants("start")) await benchStart(ROUNDS);
if (wants("start") || chosen.includes("idle")) await benchIdle();
const project = {
  "predictor.py": NOOP,
  "quern.yaml":
    "- name: noop\n  predictor: {path: predictor.py}\n  autoscaling: {max_replicas: 1}\n- name: noop-batch\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
};
mkdirSync(FILES_DIRECTORY, { recursive: true });
const server = new TestServer({ QUERN_ALLOW_LOCAL_ROOT: `${directory}:${FILES_DIRECTORY}` });
await server.start();
server.deploy(project);
if (wants("realtime")) await benchRealtime(server, ROUNDS);
if (wants("batch")) {
  await benchBatch(server, linesFile(join(directory, "lines-1m.jsonl"), 1_000_000), 1_000_000, ROUNDS);
  await benchTail(server, linesFile(join(directory, "lines-10k.jsonl"), 10_000));
}
if (wants("files")) await benchFiles(server);
if (chosen.includes("peers")) {
  const path = linesFile(join(directory, "lines-1m.jsonl"), 1_000_000);
  await benchPeers(server, directory, path, linesFile(join(directory, "lines-5m.jsonl"), 5_000_000));
}
await server.stop();
if (wants("beside")) {
  const lines = linesFile(join(directory, "lines-10m.jsonl"), 10_000_000);
  await benchBeside(directory, project, lines, 10_000_000);
}
if (chosen.includes("outputs")) {
  const lines = scaled("lines", 1_000_000);
  const path = linesFile(join(directory, `lines-${lines}.jsonl`), lines);
  const [rounds, slowS] = [scaled("rounds", ROUNDS), scaled("slow", 60)];
  await benchOutputs(directory, { lines, path, rounds, slowS });
}
if (chosen.includes("databases")) {
  const lines = scaled("lines", 1_000_000);
  const path = linesFile(join(directory, `lines-${lines}.jsonl`), lines);
  const rounds = scaled("rounds", ROUNDS);
  await benchDatabases({ project, path, lines, rounds }, { QUERN_ALLOW_LOCAL_ROOT: directory });
}
if (chosen.includes("transport")) await benchTransport(ROUNDS);
if (chosen.includes("small-jobs")) await benchSmallJobs();
if (chosen.includes("dashboard")) await benchDashboard();
if (chosen.includes("hostile")) benchHostile(directory);
// Needs `node scripts/servers.mjs` before; `peers` installs what it compares with.
if (chosen.includes("s3")) await benchS3(project);
if (chosen.includes("applications")) await benchApplications();
if (chosen.includes("serving")) await benchServing(join(directory, "serving"));
process.exitCode = allHold() ? 0 : 1;
