/**
 * What failed once among thousands of tests, and passes alone. Such a failure is no reason to keep a change back, and
 * no reason to forget it: it is printed at the end as `UNSTEADY`, with its first error. See CONTRIBUTING.md.
 */
import { relative } from "node:path";
import { root } from "./setup.mjs";

/** More files do not fail by chance. */
const FILES_MAX = 2;
/** A test that fails every other time would pass all of them one time in eight. */
const REPEATS = 3;

/**
 * The files to repeat after a run with this report of Vitest: none if nothing failed, if too much did, or if a file
 * could not be loaded.
 */
function filesToRepeat({ testResults }) {
  const failed = testResults.filter(({ status }) => status === "failed");
  const loaded = failed.every(({ assertionResults }) => assertionResults.some(isFailed));
  return failed.length <= FILES_MAX && loaded ? failed.map(({ name }) => relative(root, name)) : [];
}

const isFailed = ({ status }) => status === "failed";

/** Repeats the files that failed. True if each repeat passed. `run(files)` returns the status of a run. */
export function passesAlone(report, run) {
  const files = filesToRepeat(report);
  if (files.length === 0) return false;
  console.log(`\n== ${files.join(" and ")} failed; alone, ${REPEATS} times:`);
  return Array.from({ length: REPEATS }).every(() => run(files) === 0);
}
