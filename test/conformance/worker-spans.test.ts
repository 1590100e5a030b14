/** When the workers of a job worked, on SQLite and on PostgreSQL. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST_SPAN, loseSpans, spansOf } from "../../src/batch/spans/span-rows.ts";
import { WorkerSpans } from "../../src/batch/spans/worker-spans.ts";
import { WORKER_SPANS_MAX } from "../../src/contracts/limits/jobs.ts";
import type { Database } from "../../src/database/database.ts";
import { BOTH_DATABASES } from "../harness/both-databases.ts";

describe.each(BOTH_DATABASES)("the workers of a job over time on %s", (_, open, isHere) => {
  let db: Database;
  let remove = async () => {};
  beforeAll(async () => {
    if (!isHere) return;
    ({ db, remove } = await open());
  });
  afterAll(async () => {
    await remove();
  });

  it.runIf(isHere)("have a row each, with when and why they ended; the first reason counts", async () => {
    const spans = new WorkerSpans(db, "j1");
    spans.started("w1");
    expect(spans.unsaved()).toMatchObject([{ worker_id: "w1", ready_time: null, ended_time: null }]);
    await spans.save();
    spans.ready("w1");
    spans.started("w2");
    spans.because("w1", "died", "exited with code 3 with batch 7 in hand");
    spans.because("w1", "recycled");
    spans.ended("w1", 8);
    spans.ended("nobody", 1);
    await Promise.all([spans.save(), spans.save()]);
    expect(spans.unsaved()).toEqual([]);
    expect(await spansOf(db, "j1")).toMatchObject([
      {
        worker_id: "w1",
        how: "died",
        reason: "exited with code 3 with batch 7 in hand",
        batches: 8,
        spans: 1,
      },
      { worker_id: "w2", ready_time: null, ended_time: null, how: null, reason: null },
    ]);
    // The next controller finds it open.
    await db.transaction((tx) => loseSpans(tx, "2026-11-28T12:00:00.000Z"));
    const again = new WorkerSpans(db, "j1");
    again.started("w3");
    again.ended("w3", 0);
    await again.save();
    expect((await spansOf(db, "j1")).map(({ worker_id, how }) => [worker_id, how])).toEqual([
      ["w1", "died"],
      ["w2", "lost"],
      ["w3", "ended"],
    ]);
  });

  it.runIf(isHere)("count all further ones in the last row", async () => {
    const spans = new WorkerSpans(db, "j2");
    const more = 25;
    for (let at = 0; at < WORKER_SPANS_MAX + more; at++) {
      spans.started(`w${at}`);
      spans.ended(`w${at}`, 2);
      if (at % 300 === 0) await spans.save();
    }
    spans.started("runs");
    await spans.save();
    const rows = await spansOf(db, "j2");
    expect(rows).toHaveLength(WORKER_SPANS_MAX);
    const last = { number: LAST_SPAN, worker_id: `w${WORKER_SPANS_MAX + more - 1}`, spans: more + 1 };
    expect(rows.at(-1)).toMatchObject({ ...last, batches: 2 * (more + 1) });
    // It is counted once it ends, and shown until then.
    expect(spans.unsaved()).toMatchObject([{ worker_id: "runs" }]);
    spans.ended("runs", 1);
    await spans.save();
    expect((await spansOf(db, "j2")).at(-1)).toMatchObject({ worker_id: "runs", spans: more + 2 });
    expect(spans.unsaved()).toEqual([]);
  });

  it.runIf(isHere)("wait for a database that refuses, and lose nothing", async () => {
    let fails = 1;
    const refusing = new Proxy(db, {
      get: (target, name) =>
        name === "transaction" && fails-- > 0
          ? () => Promise.reject(new Error("refused"))
          : Reflect.get(target, name).bind(target),
    });
    const spans = new WorkerSpans(refusing, "j3");
    spans.started("w1");
    await spans.save();
    expect(spans.unsaved()).toHaveLength(1);
    await spans.save();
    expect(await spansOf(db, "j3")).toMatchObject([{ worker_id: "w1" }]);
  });
});
