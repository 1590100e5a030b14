/**
 * `npm run mutations -- --pure [FILE ...]`: Stryker changes the pure modules below in every small way that it knows, and runs a
 * module's own tests on each change. Fails if they notice fewer than SCORE_MIN percent. With names, only the modules that have one
 * of them in their path. docs/mutation-score.md explains what survives.
 *
 * Stryker is installed into `.stryker/` when it is first needed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../setup.mjs";

/** The last one for Node 20. */
const STRYKER_VERSION = "9.6.1";
const SCORE_MIN = 85;
/** Added to the time that the tests take unbroken: a change that makes them slower than that has made an endless loop. */
const TIMEOUT_MS = 10_000;
const AT_ONCE = 2;

/** Each module with its tests. */
const PURE = {
  "src/apis/api-state.ts": "test/apis/api-state.test.ts",
  "src/apis/change-rules.ts": "test/apis/change-rules.test.ts",
  "src/apis/deploy/deployment-rules.ts": "test/apis/deploy/deployment-rules.test.ts",
  "src/apis/deploy/plan-deployment.ts": "test/apis/deploy/plan-deployment.test.ts",
  "src/apis/replicas/autoscaler.ts": "test/apis/replicas/autoscaler.test.ts",
  "src/apis/replicas/plan-rollout.ts": "test/apis/replicas/plan-rollout.test.ts",
  "src/apis/replicas/scaling-rules.ts": "test/apis/replicas/scaling-rules.test.ts",
  "src/batch/workers/credit.ts": "test/batch/workers/credit.test.ts",
  "src/batch/workers/lease-runs.ts": "test/batch/workers/lease-runs.test.ts",
  "src/batch/workers/worker-death.ts": "test/batch/workers/worker-death.test.ts",
  "src/batch/workers/worker-losses.ts": "test/batch/workers/worker-losses.test.ts",
  "src/batch/submit/item-lines.ts": "test/batch/submit/parse-submission.test.ts",
  "src/batch/records/job-status.ts": "test/batch/records/job-status.test.ts",
  "src/batch/dispatch/lease-cursor.ts": "test/batch/dispatch/lease-cursor.test.ts",
  "src/batch/dispatch/lease-entries.ts": "test/batch/dispatch/lease-entries.test.ts",
  "src/batch/isolate/item-source.ts": "test/batch/isolate/item-source.test.ts",
  "src/batch/isolate/search.ts": "test/batch/isolate/search.test.ts",
  "src/batch/enqueue/make-segments.ts": "test/batch/enqueue/make-segments.test.ts",
  "src/batch/submit/older-names.ts": "test/batch/submit/parse-submission.test.ts",
  "src/batch/submit/parse-submission.ts": "test/batch/submit/parse-submission.test.ts",
  "src/batch/dispatch/solitude.ts": "test/batch/dispatch/solitude.test.ts",
  "src/legacy/check/content-id.ts": "test/legacy/check/content-id.test.ts",
  "src/legacy/check/build-graph.ts": "test/legacy/check/build-graph.test.ts",
  "src/legacy/resource-status.ts": "test/legacy/resource-status.test.ts",
  "src/parent/silence.ts": "test/parent/silence.test.ts",
};

const directory = join(root, ".stryker");
const program = join(directory, "node_modules", "@stryker-mutator", "core", "bin", "stryker.js");

function install() {
  const manifest = join(directory, "node_modules", "@stryker-mutator", "core", "package.json");
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, "utf8")).version === STRYKER_VERSION) return;
  console.error("installing Stryker ...");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), "{}\n");
  const packages = ["core", "vitest-runner"].map((name) => `@stryker-mutator/${name}@${STRYKER_VERSION}`);
  const options = ["--no-save", "--no-package-lock", "--no-fund", "--no-audit", "--loglevel=error"];
  // Without its peer dependencies, because vitest is the project's own.
  run("npm", ["install", "--prefix", directory, "--legacy-peer-deps", ...options, ...packages]);
}

/** Runs Stryker on one module with this module's tests alone; returns the changes. */
function mutate(module) {
  const vitest = { include: [PURE[module]], testTimeout: 60_000, hookTimeout: 60_000 };
  writeFileSync(
    join(directory, "vitest.config.mjs"),
    `export default ${JSON.stringify({ test: vitest })};\n`,
  );
  const settings = {
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner"],
    vitest: { configFile: ".stryker/vitest.config.mjs", related: false },
    mutate: [module],
    ignorePatterns: ["**", "!src/**", "!test/**", "!package.json", "!.stryker/vitest.config.mjs"],
    // Stryker reads this file through the compiler's programming interface, which TypeScript 7 does not have.
    tsconfigFile: ".stryker/none.json",
    coverageAnalysis: "perTest",
    concurrency: AT_ONCE,
    timeoutMS: TIMEOUT_MS,
    reporters: ["json"],
    jsonReporter: { fileName: ".stryker/report.json" },
    logLevel: "error",
    tempDirName: ".stryker/tmp",
    cleanTempDir: "always",
    allowConsoleColors: false,
  };
  const report = join(directory, "report.json");
  const config = join(directory, "stryker.json");
  rmSync(report, { force: true });
  writeFileSync(config, JSON.stringify(settings, null, 2));
  const { status } = spawnSync(process.execPath, [program, "run", config], { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new Error(`Stryker failed for ${module} (exit code ${status})`);
  const [{ source, mutants }] = Object.values(JSON.parse(readFileSync(report, "utf8")).files);
  return mutants
    .filter((mutant) => COUNTED.includes(mutant.status))
    .map((mutant) => ({ ...mutant, before: textAt(source, mutant.location) }));
}

const NOTICED = ["Killed", "Timeout"];
/** A change that does not run at all says nothing about the tests. */
const COUNTED = [...NOTICED, "Survived", "NoCoverage"];
const COLUMNS = ["changes", "noticed", "by a timeout", "score"];

/** A place's text on one line. */
function textAt(source, { start, end }) {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  return oneLine(lines.join(" "));
}

const oneLine = (text) => text.replace(/\s+/g, " ");

function score(mutants) {
  const noticed = mutants.filter(({ status }) => NOTICED.includes(status)).length;
  return mutants.length === 0 ? 100 : (100 * noticed) / mutants.length;
}

function printRow(name, mutants) {
  const withStatus = (statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
  const cells = [
    mutants.length,
    withStatus(NOTICED),
    withStatus(["Timeout"]),
    `${score(mutants).toFixed(1)} %`,
  ];
  console.log(`| ${[name, ...cells].join(" | ")} |`);
}

function printSurvivors(module, mutants) {
  for (const { status, location, before, replacement } of mutants) {
    if (NOTICED.includes(status)) continue;
    const place = `${module}:${location.start.line}:${location.start.column}`;
    console.log(`${place}: ${status}: ${before} => ${oneLine(replacement)}`);
  }
}

/** Ends with a non-zero exit code if the score is too low. */
export function mutatePure(names) {
  const modules = Object.keys(PURE).filter(
    (module) => names.length === 0 || names.some((name) => module.includes(name)),
  );
  if (modules.length === 0) throw new Error(`no pure module has this in its path: ${names.join(", ")}`);
  for (const file of modules.flatMap((module) => [module, PURE[module]]))
    if (!existsSync(join(root, file))) throw new Error(`${file} is not there: correct the table of modules`);
  install();
  const results = modules.map((module) => {
    const mutants = mutate(module);
    printSurvivors(module, mutants);
    const { length: timeouts } = mutants.filter(({ status }) => status === "Timeout");
    console.log(`${module}: ${score(mutants).toFixed(1)} % of ${mutants.length}, ${timeouts} by a timeout`);
    return [module, mutants];
  });
  console.log(`\n| module | ${COLUMNS.join(" | ")} |\n|---|${"---|".repeat(COLUMNS.length)}`);
  for (const [module, mutants] of results) printRow(`\`${module}\``, mutants);
  const all = results.flatMap(([, mutants]) => mutants);
  printRow("all", all);
  console.log(`\n${score(all).toFixed(1)} % of the changes were noticed; at least ${SCORE_MIN} % must be`);
  process.exitCode = score(all) >= SCORE_MIN ? 0 : 1;
}
