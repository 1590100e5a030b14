/** When a job ends because its workers keep dying, and what its status then says. */
import { describe, expect, it } from "vitest";
import { WorkerLosses, type WorkersKeepDying } from "../../../src/batch/workers/worker-losses.ts";
import {
  BROKEN_WORKERS_MAX,
  DEADLY_BATCHES_MAX,
  IDLE_DEATHS_MAX,
} from "../../../src/contracts/limits/jobs.ts";
import type { WorkerExit } from "../../../src/engine/engine.ts";

type Event = (losses: WorkerLosses) => WorkersKeepDying | undefined;

const KILLED: WorkerExit = { signal: "SIGSEGV", lastLines: ["last words"] };
const idle: Event = (losses) => losses.diedIdle(KILLED);
const deadly: Event = (losses) => losses.failedBatch(KILLED);
const broke: Event = (losses) => losses.brokeProtocol(KILLED, "a frame too many");
const settled =
  (succeeded: number): Event =>
  (losses) => {
    losses.settled(succeeded);
    return undefined;
  };
const times = (count: number, event: Event) => Array<Event>(count).fill(event);

/** The number of the event that ends the job; undefined if it goes on. */
function endedBy(...events: Event[]): number | undefined {
  const losses = new WorkerLosses();
  const at = events.findIndex((event) => event(losses) !== undefined);
  return at === -1 ? undefined : at + 1;
}

describe("a job whose workers keep dying", () => {
  it.each<[string, Event[], number | undefined]>([
    ["ends after three idle deaths in a row", times(4, idle), IDLE_DEATHS_MAX],
    ["ends after ten deadly batches in a row", times(11, deadly), DEADLY_BATCHES_MAX],
    ["ends after three workers that broke the protocol", times(4, broke), BROKEN_WORKERS_MAX],
    [
      "continues if a batch is settled between idle deaths, even a failed one",
      [...times(IDLE_DEATHS_MAX - 1, idle), settled(0), ...times(IDLE_DEATHS_MAX - 1, idle)],
      undefined,
    ],
    [
      "counts idle deaths from the last settled batch",
      [...times(IDLE_DEATHS_MAX - 1, idle), settled(0), ...times(IDLE_DEATHS_MAX, idle)],
      2 * IDLE_DEATHS_MAX,
    ],
    [
      "continues if a batch succeeds between deadly batches",
      [...times(DEADLY_BATCHES_MAX - 1, deadly), settled(1), ...times(DEADLY_BATCHES_MAX - 1, deadly)],
      undefined,
    ],
    [
      "counts deadly batches over batches that failed in another way",
      [...times(DEADLY_BATCHES_MAX - 1, deadly), settled(0), deadly],
      DEADLY_BATCHES_MAX + 1,
    ],
    [
      "counts broken workers over the whole run",
      [...times(BROKEN_WORKERS_MAX - 1, broke), settled(100), broke],
      BROKEN_WORKERS_MAX + 1,
    ],
    [
      "counts each kind of loss by itself",
      [
        ...times(IDLE_DEATHS_MAX - 1, idle),
        ...times(DEADLY_BATCHES_MAX - 1, deadly),
        ...times(BROKEN_WORKERS_MAX - 1, broke),
      ],
      undefined,
    ],
  ])("%s", (_, events, expected) => {
    expect(endedBy(...events)).toBe(expected);
  });

  /** The event that ends the job. */
  const endOf = (event: Event, count: number) => {
    const losses = new WorkerLosses();
    return times(count, event)
      .map((each) => each(losses))
      .at(-1);
  };

  it.each<[string, Event, number, string]>([
    [
      "idle deaths",
      idle,
      IDLE_DEATHS_MAX,
      `${IDLE_DEATHS_MAX} workers in a row died while they had no batch; the last one was killed by SIGSEGV`,
    ],
    [
      "deadly batches",
      deadly,
      DEADLY_BATCHES_MAX,
      `${DEADLY_BATCHES_MAX} batches in a row failed because their worker died; the last one was killed by SIGSEGV`,
    ],
    [
      "broken workers",
      broke,
      BROKEN_WORKERS_MAX,
      `${BROKEN_WORKERS_MAX} workers broke the protocol (the last one: a frame too many); the last one was killed by SIGSEGV`,
    ],
  ])("names the cause, the cure and the evidence after too many %s", (_, event, count, message) => {
    expect(endOf(event, count)).toEqual({
      kind: "worker_error",
      reason: {
        code: "workers_keep_dying",
        message,
        hint: "`quern logs API JOB` has their last output; `quern job resume API JOB` continues the job once the cause is fixed",
        evidence: { signal: "SIGSEGV", last_lines: ["last words"] },
      },
    });
  });

  it("ends as out of memory if the last worker ran out of memory", () => {
    const exit: WorkerExit = { signal: "SIGKILL", outOfMemory: "kernel" };
    expect(endOf((losses) => losses.diedIdle(exit), IDLE_DEATHS_MAX)?.kind).toBe("worker_oom");
  });
});
