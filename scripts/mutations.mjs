/**
 * `npm run mutations [-- NAME ...]`: breaks each numbered guarantee of ARCHITECTURE.md on purpose, and passes only if
 * the test that guards it fails. A breakage is a patch in test/mutations/ that names its tests; it is applied to a copy
 * of the checkout. What the tests run of it is built, and the tests are run there. Unbroken, the same tests must be
 * green. A patch that does not apply or build, a missing test and a test that hangs are failures too, each with its own
 * message.
 *
 * `npm run mutations -- --write NAME` makes the uncommitted changes of src/ and python/ the breakage of NAME.patch,
 * under the head that the file has.
 *
 * `npm run mutations -- --pure` is another run: small changes of the pure modules, made by Stryker
 * (scripts/mutations/pure.mjs).
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCopy } from "./mutations/copy.mjs";
import { parseHead, readPatches } from "./mutations/patches.mjs";
import { mutatePure } from "./mutations/pure.mjs";
import { runTests } from "./mutations/red-tests.mjs";
import { root, setUp } from "./setup.mjs";

const AT_ONCE = 3;
const total = { passed: 0, failed: 0, skipped: 0 };

function tell(verdict, name, seconds, what) {
  total[verdict]++;
  console.log(`${verdict === "failed" ? "FAILED " : ""}${name} (${seconds.toFixed(1)} s): ${what}`);
}

async function timed(name, work) {
  const startedMs = performance.now();
  const { verdict, what } = await work().catch((error) => ({ verdict: "failed", what: error.message }));
  tell(verdict, name, (performance.now() - startedMs) / 1000, what);
}

/** Runs all the tests on the unbroken copy. Returns those that cannot run here. */
async function unbroken(patches) {
  const tests = patches.flatMap(({ red }) => red);
  const skipped = new Set();
  await timed("unbroken", async () => {
    const results = await runTests(root, tests);
    for (const { test, outcome } of results) if (outcome === "skipped") skipped.add(test);
    const bad = results.filter(({ outcome }) => outcome !== "passed" && outcome !== "skipped");
    if (bad.length === 0) return { verdict: "passed", what: `${results.length} tests are green` };
    const lines = bad.map(({ test, outcome, message }) => `\n  ${test}: ${outcome}: ${message}`);
    return { verdict: "failed", what: `they must be green, and are not:${lines.join("")}` };
  });
  return skipped;
}

/** One breakage: each of its tests must fail, by itself. */
async function broken(patch, cannotRun) {
  if (patch.red.some((test) => cannotRun.has(test)))
    return { verdict: "skipped", what: "its test cannot run here" };
  const copy = makeCopy();
  try {
    copy.apply(patch.file);
    await copy.build(patch.touches, patch.red);
    const results = await runTests(copy.directory, patch.red);
    const bad = results.filter(({ outcome }) => outcome !== "failed");
    if (bad.length === 0) return { verdict: "passed", what: `red: ${results[0].message}` };
    const lines = bad.map(({ test, outcome, message }) => `\n  ${test}: ${outcome} ${message}`);
    return { verdict: "failed", what: `must turn red, and does not (${patch.breaks}):${lines.join("")}` };
  } finally {
    copy.remove();
  }
}

/** Each guarantee that ARCHITECTURE.md numbers has a breakage. */
function assertComplete(patches) {
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const guarantees = [...text.matchAll(/^(\d+)\. \*\*/gm)].map((match) => Number(match[1]));
  const missing = guarantees.filter((number) => !patches.some(({ guarantee }) => guarantee === number));
  const verdict = guarantees.length > 0 && missing.length === 0 ? "passed" : "failed";
  const what = missing.length === 0 ? "each has a breakage" : `no breakage for ${missing.join(", ")}`;
  tell(verdict, `${guarantees.length} guarantees of ARCHITECTURE.md`, 0, what);
}

function write(name) {
  const file = join(root, "test", "mutations", `${name}.patch`);
  const { text: head } = parseHead(file, readFileSync(file, "utf8"));
  const diff = execFileSync("git", ["diff", "-U1", "--no-color", "--", "src", "python", "assembly"], {
    cwd: root,
    encoding: "utf8",
  });
  if (diff === "") throw new Error("src/ and python/ have no uncommitted change");
  writeFileSync(file, `${head}---\n${diff}`);
  console.log(`wrote ${file}; now take the change back: git checkout src python`);
}

async function main(args) {
  if (args[0] === "--write") return write(args[1]);
  setUp();
  if (args[0] === "--pure") return mutatePure(args.slice(1));
  const patches = readPatches(args);
  if (args.length === 0) assertComplete(patches);
  const cannotRun = await unbroken(patches);
  const waiting = [...patches];
  const worker = async () => {
    for (let patch = waiting.shift(); patch !== undefined; patch = waiting.shift())
      await timed(patch.name, () => broken(patch, cannotRun));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  process.exitCode = total.failed === 0 ? 0 : 1;
}

await main(process.argv.slice(2));
