/** The queue of the thread for large work: in order, bounded, and no entry outlives its caller. */
import { expect, it } from "vitest";
import { ServiceError } from "../../src/contracts/errors.ts";
import { ASIDE_WAITING_BYTES_MAX } from "../../src/contracts/limits/event-loop.ts";
import { SideThread } from "../../src/engine/side-work.ts";

interface Task {
  name: string;
  /** Its work continues until this is no longer 0. */
  gate: Int32Array;
}

/** Answers with all that it has done so far. */
const program = `
  import { parentPort } from "node:worker_threads";
  const done = [];
  parentPort.on("message", ({ name, gate }) => {
    Atomics.wait(gate, 0, 0);
    done.push(name);
    parentPort.postMessage({ result: done });
  });`;

function make() {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const thread = new SideThread<Task, string[]>({
    program: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
    limitMs: 60_000,
    heapMiB: 64,
    tooMuch: () => new ServiceError("invalid_request", "too much"),
  });
  return {
    run: (name: string, bytes: number, left?: AbortSignal) => thread.run({ name, gate }, { bytes, left }),
    open: () => {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
    },
  };
}

it("work that waits is dropped when its caller leaves, and work that has begun ends", async () => {
  const { run, open } = make();
  const [early, late] = [new AbortController(), new AbortController()];
  const first = run("first", 1, early.signal);
  const second = run("second", ASIDE_WAITING_BYTES_MAX, late.signal);
  early.abort();
  late.abort();
  await expect(second).rejects.toThrow("disconnected before it was read");
  await expect(run("none", 1, late.signal)).rejects.toThrow("disconnected before it was read");
  // Its place in the queue is free again.
  const third = run("third", ASIDE_WAITING_BYTES_MAX);
  open();
  expect(await first).toEqual(["first"]);
  expect(await third).toEqual(["first", "third"]);
});

it("work beyond the queue limit is refused, and accepted again once there is room", async () => {
  const { run, open } = make();
  const taken = [
    run("first", ASIDE_WAITING_BYTES_MAX),
    run("second", ASIDE_WAITING_BYTES_MAX - 1),
    run("third", 1),
  ];
  await expect(run("fourth", 1)).rejects.toMatchObject({ code: "queue_full", details: { retryAfterS: 1 } });
  open();
  expect((await Promise.all(taken)).at(-1)).toEqual(["first", "second", "third"]);
  expect(await run("fifth", ASIDE_WAITING_BYTES_MAX)).toHaveLength(4);
});
