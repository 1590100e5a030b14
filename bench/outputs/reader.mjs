/**
 * Reads the results of a job as fast as they come: `node reader.mjs URL CONTROLLER_PID` prints bytes, rows, milliseconds
 * until the first of them, seconds, and the most memory of the controller meanwhile.
 */
import { readFileSync } from "node:fs";
import { get } from "node:http";

const NEWLINE = 10;
const [, , url, pid] = process.argv;
const rssMiB = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))[1]) / 1024;

const started = performance.now();
let [bytes, rows, firstMs, most] = [0, 0, 0, rssMiB()];
const look = setInterval(() => {
  most = Math.max(most, rssMiB());
}, 100);
get(url, (response) => {
  response.on("data", (chunk) => {
    if (bytes === 0) firstMs = performance.now() - started;
    bytes += chunk.length;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) rows++;
  });
  response.on("end", () => {
    clearInterval(look);
    const seconds = (performance.now() - started) / 1000;
    console.log(JSON.stringify({ bytes, rows, first_ms: firstMs, seconds, controller_mib: most }));
  });
});
