/**
 * The data of a declarative application at ten million rows, beside pandas doing the same: ingested from CSV, validated, mean, stddev and
 * index_string, normalized and indexed, written as training and evaluation sets. CPU seconds, and the most memory.
 */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { checkApplication } from "../src/legacy/check/application.ts";
import { buildGraph } from "../src/legacy/check/build-graph.ts";
import { dataPlan } from "../src/legacy/plans.ts";
import { root } from "../test/harness/server.ts";
import { report } from "./measure.ts";

const ROWS = 10_000_000;
const RSS_MIB = 2048;
const directory = join(root, ".bench", "applications");

interface Figures {
  cpu_s: number;
  wall_s: number;
  rss_mib: number;
}

export async function benchApplications(): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const csv = csvFile(join(directory, "rows.csv"));
  const python = installed();
  const ours = measured(python, stageCommand(csv));
  const theirs = measured(python, [join(root, "bench", "applications", "pandas_peer.py"), csv, directory]);
  for (const [name, figures] of Object.entries({ quern: ours, pandas: theirs }))
    console.log(
      `  ${name}: ${figures.cpu_s.toFixed(1)} s CPU, ${figures.wall_s.toFixed(1)} s, ${figures.rss_mib.toFixed(0)} MiB`,
    );
  const ratio = ours.cpu_s / theirs.cpu_s;
  report("CPU of ten million rows / pandas", ratio, "< 1", ratio < 1);
  report("memory of ten million rows, MiB", ours.rss_mib, `<= ${RSS_MIB}`, ours.rss_mib <= RSS_MIB);
}

/** The Python that has the packages of both. */
function installed(): string {
  const python = join(directory, "python", "bin", "python");
  if (existsSync(python)) return python;
  execFileSync("python3", ["-m", "venv", join(directory, "python")]);
  execFileSync(python, ["-m", "pip", "install", "--quiet", "duckdb", "numpy", "pandas", "pyarrow"]);
  return python;
}

function measured(python: string, command: readonly string[]): Figures {
  const wrapper = join(root, "bench", "applications", "measured.py");
  const text = execFileSync(python, [wrapper, python, ...command], {
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: join(root, "python") },
  });
  return JSON.parse(text) as Figures;
}

/** The data stage as the server starts it. */
function stageCommand(csv: string): string[] {
  const project = join(directory, "project");
  const artifacts = join(directory, "artifacts");
  for (const path of [project, artifacts]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  }
  writeFileSync(join(project, "model.py"), "");
  const application = checkApplication(APPLICATION, "app.yaml", project);
  if (application === undefined || "errors" in application) throw new Error(JSON.stringify(application));
  const inputs = { environment: "dev", version: "1", requirements: "", hashOf: (path: string) => path };
  const places = { project, artifacts, alive: join(artifacts, "alive") };
  writeFileSync(places.alive, "");
  const plan = dataPlan(buildGraph(application, inputs), places, [csv]);
  writeFileSync(join(artifacts, "plan.json"), JSON.stringify(plan));
  return ["-m", "quern_application", join(artifacts, "plan.json")];
}

/** Made once, the same each time. */
function csvFile(path: string): string {
  if (existsSync(path) && statSync(path).size > ROWS * 15) return path;
  const file = openSync(path, "w");
  for (let at = 0; at < ROWS; at += 10_000) {
    let block = "";
    for (let row = at; row < at + 10_000; row++) {
      const x = ((row * 7919) % 20_011) / 1000 - 10;
      const y = ((row * 104_729) % 30_011) / 100;
      block += `${x.toFixed(4)},${y.toFixed(2)},word${(row * row) % 53}\n`;
    }
    writeSync(file, block);
  }
  closeSync(file);
  return path;
}

const normalized = (column: string) => `
- {kind: raw_column, name: ${column}, type: FLOAT_COLUMN${column === "x" ? ", min: -100, max: 100" : ""}}
- {kind: aggregate, name: ${column}_mean, aggregator: quern.mean, inputs: {columns: {col: ${column}}}}
- {kind: aggregate, name: ${column}_stddev, aggregator: quern.stddev, inputs: {columns: {col: ${column}}}}
- {kind: transformed_column, name: ${column}_normalized, transformer: quern.normalize, inputs: {columns: {num: ${column}}}, args: {mean: ${column}_mean, stddev: ${column}_stddev}}`;

const APPLICATION = `- {kind: app, name: rows}
- kind: environment
  name: dev
  data: {type: csv, path: file:///rows.csv, schema: [x, y, word]}
${normalized("x")}${normalized("y")}
- {kind: raw_column, name: word, type: STRING_COLUMN}
- {kind: aggregate, name: index, aggregator: quern.index_string, inputs: {columns: {col: word}}}
- {kind: transformed_column, name: word_indexed, transformer: quern.index_string, inputs: {columns: {text: word}}, args: {index: index}}
- {kind: model, name: model, path: model.py, target_column: word_indexed, feature_columns: [x_normalized, y_normalized]}
`;
