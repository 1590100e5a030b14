/**
 * `npm test`: installs what is missing, then every stage that needs no special machine; with `--tensorflow`,
 * `--own-kernel` or `--postgres` as the first argument, the tests that need it; with `--cluster`, those of
 * scripts/cluster.mjs. Ends with one line over all stages: `N passed, N failed, N skipped`.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { applicationPython, readersPython, tensorflowPython } from "./application-python.mjs";
import { missingForOwnKernel, runInOwnKernel } from "./own-kernel.mjs";
import { root, setUp } from "./setup.mjs";
import { passesAlone } from "./unsteady.mjs";

setUp();

const TENSORFLOW = "--tensorflow";
const OWN_KERNEL = "--own-kernel";
/**
 * On another Node, only tests that depend on Node's own parts (SQLite, HTTP, streams, processes and their channels).
 */
const OTHER_NODE = "--other-node";
/** The folder of the tests that run in a kernel of their own. */
const MEMORY_GROUPS = join("test", "memory-groups");
/** With PostgreSQL as the database of each server, tests of what depends on it most. */
const POSTGRES = "--postgres";
/** In the cluster that scripts/cluster.mjs has started. */
const CLUSTER = "--cluster";
const SUITES = [TENSORFLOW, OWN_KERNEL, OTHER_NODE, POSTGRES, CLUSTER];
const scenarios = (folder, ...names) => names.map((name) => `test/scenarios/${folder}/${name}.test.ts`);
/**
 * Leaves out tests that do not depend on the version of Node: decisions, Python, applications, guides, the rules of
 * configurations, addresses and jobs, other stores and queues.
 */
const OF_NODE = [
  "test/base/",
  "test/batch/durability.test.ts",
  "test/batch/records/large-columns.test.ts",
  "test/batch/zstd.test.ts",
  "test/batch/zstd-writer.test.ts",
  "test/conformance/database.test.ts",
  "test/database/",
  "test/gateway/",
  "test/observe/",
  "test/parent/",
  "test/protocol/",
  ...scenarios("batch", "compressed-outputs", "survival"),
  ...scenarios("operations", "server"),
  ...scenarios("realtime", "payloads", "realtime", "rude-clients", "streams"),
];

/** Durability, counts and rows of each kind, unless arguments choose others. Everything else uses the same port. */
const OF_DATABASE = [
  ...scenarios("batch", "kill-points", "survival", "output-ends", "isolation"),
  ...scenarios("access", "keys"),
  ...scenarios("operations", "records"),
  ...scenarios("applications", "applications"),
];

const total = { passed: 0, failed: 0, skipped: 0 };
/** Failures are printed again at the very end, where people start to read a long log. */
const failures = [];
/** What failed once, and then passed alone. */
const unsteady = [];

async function stage(name, runStage) {
  console.log(`\n== ${name}`);
  const counts = await runStage();
  for (const key of Object.keys(total)) total[key] += counts[key];
}

const extraArguments = () => process.argv.slice(2).filter((argument) => !SUITES.includes(argument));

const vitestCommand = (report, files = []) => [
  process.execPath,
  join(root, "node_modules", "vitest", "vitest.mjs"),
  "run",
  // Without a file beside the packages, which may not be writable.
  "--configLoader=runner",
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
  ...extraArguments(),
  ...files,
];

/** The TypeScript tests; extra arguments choose among them. */
function vitest(env = {}, files = []) {
  const { status, text } = runVitest(env, files);
  const repeat = (failed) => runVitest(env, failed).status;
  const isChosen = extraArguments().length > 0;
  if (status === 0 || text === undefined || isChosen || !passesAlone(JSON.parse(text), repeat))
    return counted(status, text);
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(text);
  unsteady.push(...testResults.flatMap(failedTests));
  return { passed: numPassedTests + numFailedTests, failed: 0, skipped: numPendingTests + numTodoTests };
}

/** One run: its exit status, and its report if it wrote one. */
function runVitest(env, files) {
  const report = join(tmpdir(), `quern-vitest-${process.pid}.json`);
  const [command, ...args] = vitestCommand(report, files);
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  const text = textOf(report);
  rmSync(report, { force: true });
  return { status, text };
}

function textOf(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

/** The result of a run from its report; undefined if it wrote none. */
function counted(status, report) {
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(report);
  failures.push(...testResults.flatMap(failedTests));
  // A file that could not be loaded has no tests that failed.
  return {
    passed: numPassedTests,
    failed: status === 0 ? numFailedTests : Math.max(1, numFailedTests),
    skipped: numPendingTests + numTodoTests,
  };
}

/** Each failed test of a file as its name and the beginning of what it said. */
function failedTests({ name, message, assertionResults }) {
  const file = relative(root, name);
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length === 0 && message) return [`${file}: ${message}`];
  return failed.map(
    (test) => `${file} > ${test.fullName}\n${test.failureMessages.join("\n").slice(0, 2_000)}`,
  );
}

function pythonTests(python, directory) {
  const args = ["-m", "unittest", "discover", "-s", directory, "-t", "python"];
  const { status, stderr } = spawnSync(python, args, {
    cwd: root,
    encoding: "utf8",
  });
  process.stdout.write(stderr);
  const number = (pattern) => Number(pattern.exec(stderr)?.[1] ?? 0);
  const ran = number(/Ran (\d+) test/);
  const failed = number(/failures=(\d+)/) + number(/errors=(\d+)/);
  const skipped = number(/skipped=(\d+)/);
  if (status !== 0 && failed === 0) return { passed: 0, failed: 1, skipped: 0 };
  return { passed: ran - failed - skipped, failed, skipped };
}

/** Applications with TensorFlow's estimators. */
function tensorflow() {
  const python = tensorflowPython();
  if (python !== undefined) return vitest({ QUERN_TEST_SUITE: "tensorflow", QUERN_TEST_TENSORFLOW: python });
  console.log("there is no TensorFlow with estimators for this Python: 3.9 to 3.11 have one");
  return { passed: 0, failed: 0, skipped: 1 };
}

/**
 * Tests that need control groups with memory. Each file has a kernel of its own, which uses one core, and all run at
 * once. If arguments choose tests, one kernel runs them.
 */
async function ownKernel() {
  const missing = missingForOwnKernel();
  if (missing !== undefined) {
    console.log(`this machine lacks ${missing}`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
  const python = spawnSync(
    process.env.QUERN_PYTHON ?? "python3",
    ["-c", "import sys; print(sys.executable)"],
    {
      encoding: "utf8",
    },
  ).stdout.trim();
  // A kernel in user mode is several times slower than the machine, and that may be busy with other stages.
  const env = {
    QUERN_TEST_SUITE: "own-kernel",
    QUERN_TEST_PATIENCE: "4",
    QUERN_PYTHON: python,
    NO_COLOR: "1",
  };
  const read = (directory) => textOf(join(directory, "report.json"));
  const inKernel = async (files) => {
    const command = [...vitestCommand("/mnt/report.json", files), "--no-file-parallelism"];
    const { status, result } = await runInOwnKernel(command, env, read);
    return counted(status, result);
  };
  const files = readdirSync(join(root, MEMORY_GROUPS)).filter((name) => name.endsWith(".cgroup.ts"));
  const kernels = process.argv.length > 3 ? [[]] : files.map((name) => [join(MEMORY_GROUPS, name)]);
  return sum(await Promise.all(kernels.map(inKernel)));
}

/** With PostgreSQL as the database of each server. */
function postgres() {
  const find = "ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null || command -v initdb";
  if (spawnSync("sh", ["-c", find]).status === 0)
    return vitest({ QUERN_TEST_DATABASE: "postgres" }, process.argv.length > 3 ? [] : OF_DATABASE);
  console.log("this machine lacks PostgreSQL");
  return { passed: 0, failed: 0, skipped: 1 };
}

/** No second try: what the first one left in the cluster is in the way. */
function cluster() {
  const { status, text } = runVitest({ QUERN_TEST_SUITE: "cluster" }, ["--no-file-parallelism"]);
  return counted(status, text);
}

function sum(all) {
  const add = (name) => all.reduce((count, counts) => count + counts[name], 0);
  return { passed: add("passed"), failed: add("failed"), skipped: add("skipped") };
}

if (process.argv[2] === TENSORFLOW) await stage("TensorFlow", tensorflow);
else if (process.argv[2] === OWN_KERNEL) await stage("a kernel of its own", ownKernel);
else if (process.argv[2] === POSTGRES) await stage("PostgreSQL", postgres);
else if (process.argv[2] === CLUSTER) await stage("Kubernetes", cluster);
else if (process.argv[2] === OTHER_NODE) await stage("TypeScript", () => vitest({}, OF_NODE));
else {
  await stage("Python runtime", () => pythonTests(process.env.QUERN_PYTHON ?? "python3", "python/tests"));
  await stage("Python of applications", () => pythonTests(applicationPython(), "python/application_tests"));
  readersPython();
  await stage("TypeScript", vitest);
}
for (const failure of unsteady) console.log(`\nUNSTEADY ${failure}`);
for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 && total.passed + total.skipped > 0 ? 0 : 1);
