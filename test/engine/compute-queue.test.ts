/** The rounds of the scheduler while somebody waits and nothing changes. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ComputeQueue } from "../../src/engine/compute-queue.ts";
import { OTHERS, type WaitingAsk } from "../../src/engine/reservations.ts";
import { NO_COMPUTE } from "../../src/engine/scheduler/compute.ts";

let nowMs = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A queue in which one waits, whose rounds take `ms` each. */
function waitingQueue(ms: number): { rounds: () => number } {
  let rounds = 0;
  const free = () => {
    rounds++;
    nowMs += ms;
    return NO_COMPUTE;
  };
  const queue = new ComputeQueue({ held: new Map(), free, grant: () => {} });
  const need = { cpuMillis: 1, memoryBytes: 0, gpus: 0 };
  queue.add({
    ...{ sinceMs: 0, by: OTHERS, need, onReserved: () => {} },
    reservation: undefined,
  } as WaitingAsk);
  return { rounds: () => rounds };
}

it("are two in a second if they are short", async () => {
  const { rounds } = waitingQueue(0);
  await vi.advanceTimersByTimeAsync(0);
  expect(rounds()).toBe(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(rounds()).toBe(3);
});

it("take half a percent of the time if they are long", async () => {
  const { rounds } = waitingQueue(20);
  await vi.advanceTimersByTimeAsync(3_900);
  expect(rounds()).toBe(1);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(rounds()).toBeGreaterThan(1);
});
