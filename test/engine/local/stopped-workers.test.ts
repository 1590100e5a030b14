/** Processes that somebody has stopped go on. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, beforeEach, expect, it } from "vitest";
import { statFields } from "../../../src/base/process-identity.ts";
import { StoppedWorkers } from "../../../src/engine/local/stopped-workers.ts";
import { eventually } from "../../harness/eventually.ts";

const POLL_MS = 100;
let child: ChildProcess;
let stopped: StoppedWorkers;
const state = () => statFields(child.pid!)[0];

beforeEach(() => {
  child = spawn("sleep", ["100"], { detached: true, stdio: "ignore" });
  stopped = new StoppedWorkers(POLL_MS);
});
afterEach(() => {
  stopped.remove(child.pid!);
  child.kill("SIGKILL");
});

it("one that is stopped at two polls in a row is continued, every time", async () => {
  stopped.add(child.pid!, "w-1");
  for (let time = 0; time < 2; time++) {
    child.kill("SIGSTOP");
    await eventually("it is stopped", () => state() === "T");
    await eventually("it goes on", () => state() === "S");
  }
});

it("one that is not followed any more stays as it is", async () => {
  stopped.add(child.pid!, "w-1");
  stopped.remove(child.pid!);
  child.kill("SIGSTOP");
  await eventually("it is stopped", () => state() === "T");
  await new Promise((resolve) => setTimeout(resolve, 5 * POLL_MS));
  expect(state()).toBe("T");
});
