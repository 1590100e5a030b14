/** What follows when all batches are settled happens once, whoever asks for it meanwhile. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { Completion } from "../../src/batch/completion.ts";
import type { WorkerFault } from "../../src/protocol/messages.ts";

type Outcome = "died" | WorkerFault | undefined;
const FAULT = { type: "ValueError", message: "no", traceback: "" } as WorkerFault;

describe("the completion of a job", () => {
  let steps: string[];
  let outcomes: Outcome[];
  let endOutput: (error?: Error) => void;
  let completion: Completion;
  let isReady: boolean;
  beforeEach(() => {
    [steps, outcomes, isReady] = [[], [], true];
    const worker = {
      hasOnJobComplete: true,
      completeJob: async () => {
        steps.push("hook");
        return outcomes.shift();
      },
    };
    const finish = () => {
      steps.push("output");
      return new Promise<void>((resolve, reject) => {
        endOutput = (error) => (error === undefined ? resolve() : reject(error));
      });
    };
    const run = {
      ...{ isEnding: false, job: { round: 1 }, output: { finish } },
      endSoon: ({ kind }: { kind: string }) => steps.push(`end: ${kind}`),
      failOutput: ({ message }: Error) => steps.push(`no output: ${message}`),
      unexpected: (error: Error) => steps.push(`unexpected: ${error.message}`),
    };
    const startMissing = () => steps.push("start a worker");
    completion = new Completion(run, { ready: () => (isReady ? [worker] : []), startMissing });
  });

  /** Asks as a worker does that becomes ready. */
  const ask = async () => {
    completion.soon();
    await nextTurn();
  };

  it("runs the hook, writes the rest of the output, and ends, once", async () => {
    for (let i = 0; i < 3; i++) await ask();
    expect(steps).toEqual(["hook", "output"]);
    endOutput();
    await nextTurn();
    await ask();
    expect(steps).toEqual(["hook", "output", "end: settled"]);
  });

  it("runs the hook again if its worker died, when there is another one", async () => {
    outcomes = ["died"];
    await ask();
    isReady = false;
    await ask();
    isReady = true;
    await ask();
    expect(steps).toEqual(["hook", "start a worker", "hook", "output"]);
  });

  it("keeps the output of a job whose hook failed", async () => {
    outcomes = [FAULT];
    await ask();
    endOutput();
    await nextTurn();
    expect(steps).toEqual(["hook", "output", "end: worker_error"]);
  });

  it("ends with the reason if the rest of the output cannot be written", async () => {
    await ask();
    endOutput(new Error("no store"));
    await nextTurn();
    await ask();
    expect(steps).toEqual(["hook", "output", "no output: no store"]);
  });
});
