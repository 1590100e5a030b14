/**
 * The longest turn of a real controller's event loop: `node --import` of this file writes it, in milliseconds of the main
 * thread's CPU time, to the file in LONGEST_TURN.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const { LONGEST_TURN: file } = process.env;

if (isMainThread && process.argv.includes("__controller")) {
  const usedNs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]);
  let [longest, before] = [0, usedNs()];
  setInterval(() => {
    const used = usedNs();
    if (used - before > longest) {
      longest = used - before;
      writeFileSync(file, String(longest / 1e6));
    }
    before = used;
  }, 5).unref();
}
