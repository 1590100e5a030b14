/** The queue of the thread for large work: in turn, bounded, and no entry outlives its caller. */
import { expect, it } from "vitest";
import { ServiceError } from "../../src/contracts/errors.ts";
import {
  ASIDE_WAITING_BYTES_MAX,
  ASIDE_WAITING_OF_A_SENDER_MAX,
} from "../../src/contracts/limits/event-loop.ts";
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
    run: (name: string, bytes: number, left?: AbortSignal, sender = "a") =>
      thread.run({ name, gate }, { bytes, sender, left }),
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
    run("second", ASIDE_WAITING_BYTES_MAX - 1, undefined, "b"),
    run("third", 1, undefined, "c"),
  ];
  await expect(run("fourth", 1)).rejects.toMatchObject({ code: "queue_full", details: { retryAfterS: 1 } });
  open();
  expect((await Promise.all(taken)).at(-1)).toEqual(["first", "second", "third"]);
  expect(await run("fifth", ASIDE_WAITING_BYTES_MAX)).toHaveLength(4);
});

it("senders take turns, and the work of each is in order", async () => {
  const { run, open } = make();
  const byA = ["a1", "a2", "a3", "a4"].map((name) => run(name, 1));
  const byB = ["b1", "b2"].map((name) => run(name, 1, undefined, "b"));
  open();
  expect((await Promise.all([...byB, ...byA])).at(-1)).toEqual(["a1", "b1", "a2", "b2", "a3", "a4"]);
});

it("a sender may have half of what may wait, and 500 pieces, so that others are accepted", async () => {
  const { run, open } = make();
  const half = ASIDE_WAITING_BYTES_MAX / 2;
  const taken = [run("first", 1), run("second", half)];
  await expect(run("refused", 1)).rejects.toMatchObject({ code: "queue_full" });
  taken.push(run("b1", half / 2, undefined, "b"));
  await expect(run("refused", half / 2, undefined, "b")).rejects.toMatchObject({ code: "queue_full" });
  for (let i = 0; i < ASIDE_WAITING_OF_A_SENDER_MAX; i++) taken.push(run("small", 1, undefined, "c"));
  await expect(run("refused", 1, undefined, "c")).rejects.toMatchObject({ code: "queue_full" });
  open();
  expect((await Promise.all(taken)).at(-1)).toHaveLength(3 + ASIDE_WAITING_OF_A_SENDER_MAX);
});
