/** Runs named tests in a checkout, and reports whether each passed, failed, was skipped or never ran. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The time limit of one run of vitest. */
const RUN_MS = 240_000;
let runs = 0;

/** Each as `{ test, outcome, message }`; `missing`, `hung` and `broken off` are failures of the run, not of the test. */
export async function runTests(directory, tests) {
  const report = join(tmpdir(), `quern-mutations-${process.pid}-${runs++}.json`);
  const { hasTimedOut, said } = await vitest(directory, tests, report);
  if (hasTimedOut) return tests.map((test) => ({ test, outcome: "hung", message: `after ${RUN_MS} ms` }));
  if (!existsSync(report))
    return tests.map((test) => ({ test, outcome: "broken off", message: said.slice(-2_000) }));
  const { testResults } = JSON.parse(readFileSync(report, "utf8"));
  rmSync(report, { force: true });
  return tests.map((test) => ({ test, ...outcomeOf(test, testResults) }));
}

function parts(test) {
  const at = test.indexOf(" > ");
  return [test.slice(0, at), test.slice(at + 3)];
}

function outcomeOf(test, testResults) {
  const [file, name] = parts(test);
  const result = testResults.find((one) => one.name.endsWith(`/${file}`));
  if (result === undefined) return { outcome: "missing", message: "the file has no tests" };
  const found = result.assertionResults.filter(({ fullName }) => fullName.includes(name));
  if (found.length === 0) return { outcome: "missing", message: result.message };
  const failed = found.find(({ status }) => status === "failed");
  if (failed !== undefined) return failure(failed);
  if (found.some(({ status }) => status === "passed")) return { outcome: "passed", message: "" };
  // Skipped because a set-up failed, or because the test asks for it.
  if (result.status === "failed") return { outcome: "broken off", message: result.message };
  return { outcome: "skipped", message: "" };
}

/** A test that reaches vitest's time limit proves nothing, because any slowness looks the same. */
function failure({ failureMessages }) {
  const message = failureMessages.join("\n");
  const [line] = message.split("\n");
  if (/timed out in \d+ms/.test(message)) return { outcome: "hung", message: line };
  return { outcome: "failed", message: line };
}

function vitest(directory, tests, report) {
  const files = [...new Set(tests.map((test) => parts(test)[0]))];
  const names = tests.map((test) => parts(test)[1].replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const args = [join(directory, "node_modules", "vitest", "vitest.mjs"), "run", "--configLoader=runner"];
  args.push("--reporter=json", `--outputFile.json=${report}`, "-t", names.join("|"), ...files);
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: directory, detached: true });
    let said = "";
    let hasTimedOut = false;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    const timer = setTimeout(() => {
      hasTimedOut = true;
      process.kill(-child.pid, "SIGKILL");
    }, RUN_MS);
    child.once("close", () => {
      clearTimeout(timer);
      resolve({ hasTimedOut, said });
    });
  });
}
