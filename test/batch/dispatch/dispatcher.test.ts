/** The state between a worker's report and its commit, and batches that may have killed the server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { Dispatching } from "../../harness/dispatching.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT } from "../../harness/projects.ts";

const predictor = mkdtempSync(join(tmpdir(), "quern-dispatcher-"));
writeFileSync(join(predictor, "predictor.py"), OBEDIENT);
afterAll(() => rmSync(predictor, { recursive: true }));

describe("a dispatcher", () => {
  let job: Dispatching;
  beforeEach(() => {
    job = new Dispatching(predictor);
  });
  afterEach(() => job.stop());

  it("returns a worker's credit only with the commit", async () => {
    // So slow that its credit stays 1.
    await job.start({ items: Array.from({ length: 5 }, () => ({ do: "sleep", seconds: 0.06 })) });
    job.closeGate();
    const worker = await job.addWorker();
    job.dispatcher.addWorker(worker);
    await eventually("its first batch is about to be committed", () => job.commits === 1);
    job.dispatcher.pump();
    expect(job.leases).toEqual([{ batches: [0], before: 0 }]);
    expect(worker.deliveries.uncommitted).toBe(1);
    job.letCommitsPass();
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 5, failed_attempts: 0 });
  });

  it("retries a failed batch only after the attempt is durable", async () => {
    await job.start({ items: [{ id: 0, do: "raise" }], maxAttempts: 2 });
    job.closeGate();
    const [failing, idle] = [await job.addWorker(), await job.addWorker()];
    job.dispatcher.addWorker(failing);
    job.dispatcher.addWorker(idle);
    await eventually("the failure is about to be committed", () => job.commits === 1);
    job.dispatcher.pump();
    expect(job.leases).toHaveLength(1);
    job.letCommitsPass();
    await eventually("it goes out again", () => job.leases.length === 2);
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 0, failed_attempts: 2, failed_batches: 1 });
  });

  it("charges one attempt to a batch that ran alone when the server died, and runs it again", async () => {
    await job.start({ items: [{ id: 0 }, { id: 1 }], condemned: [1], suspects: [1], maxAttempts: 3 });
    job.dispatcher.addWorker(await job.addWorker());
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 2, failed_attempts: 1, failed_batches: 0 });
  });

  it.each([
    ["alone", { suspects: [0] }],
    ["after a crash of the machine", { recordedBefore: 1 }],
  ])("sends a batch that runs %s only after this is durable", async (_, plan) => {
    await job.start({ items: [{ id: 0 }, { id: 1 }], ...plan });
    job.closeGate();
    const workers = [await job.addWorker(), await job.addWorker()];
    job.dispatcher.addWorker(workers[0]!);
    await eventually("it is about to be recorded", () => job.commits === 1);
    job.dispatcher.pump();
    expect(job.leases).toEqual([]);
    job.letCommitsPass();
    await eventually("it goes out", () => job.leases.length > 0);
    expect(job.leases[0]).toEqual({ batches: [0], before: 0 });
    await job.settled();
  });

  it("leases nothing while a batch of another job runs alone, and resumes afterwards", async () => {
    await job.start({ items: [{ id: 0 }] });
    const other = { isIdle: true, pump: () => {} };
    job.solitude.join(other);
    expect(job.solitude.enter(other)).toBe(true);
    job.dispatcher.addWorker(await job.addWorker());
    job.dispatcher.pump();
    expect(job.leases).toEqual([]);
    job.solitude.exit(other);
    await job.settled();
  });

  it("runs a suspect alone: its worker has no other batch", async () => {
    const suspects = [40, 41, 150];
    await job.start({ items: Array.from({ length: 300 }, (_, id) => ({ id })), suspects });
    job.dispatcher.addWorker(await job.addWorker());
    await job.settled();
    const leased = (batch: number) => job.leases.find(({ batches }) => batches.includes(batch));
    for (const suspect of suspects) expect(leased(suspect)).toEqual({ batches: [suspect], before: 0 });
    const after = job.leases.slice(1).filter((_, at) => suspects.includes(job.leases[at]!.batches[0]!));
    expect(after.map(({ before }) => before)).toEqual([0, 0, 0]);
    // Neighbours did go out together.
    expect(Math.max(...job.leases.map(({ batches }) => batches.length))).toBeGreaterThan(1);
  });

  it("keeps the errors of failed batches whole until they use up their space; the rest stays complete", async () => {
    const items = Array.from({ length: 6 }, () => ({ id: "x".repeat(1_000), do: "raise" }));
    await job.start({ items, errorBytes: 1, hasQueue: true, maxAttempts: 2 });
    job.dispatcher.addWorker(await job.addWorker());
    await job.settled();
    expect(await job.job()).toMatchObject({ succeeded: 0, failed_attempts: 12, failed_batches: 6 });
    const failures = await job.failures();
    expect(failures.map(({ attempts }) => attempts)).toEqual(Array(6).fill(2));
    // One uses up the space, and one is the first of its kind after it.
    const isCut = (json: string) => (JSON.parse(json) as { traceback: string }).traceback === "";
    expect(failures.filter(({ error_json }) => isCut(error_json))).toHaveLength(4);
    expect(new Set((await job.errors("batches")).map(({ error_group }) => error_group)).size).toBe(1);
    const letters = await job.letters();
    expect(letters.map(({ body }) => JSON.parse(Buffer.from(body).toString()))).toEqual(
      items.map((item) => [item]),
    );
    const errors = letters.map(
      ({ attributes_json }) => (JSON.parse(attributes_json) as { error: string }).error,
    );
    expect(errors.filter(isCut)).toHaveLength(4);
    expect(errors.filter((error) => error.includes("(cut: 1009 characters in all)"))).toHaveLength(4);
    expect(job.lines).toEqual([expect.stringContaining("have used up their space")]);
  });

  it("records the error of a batch's last attempt only", async () => {
    await job.start({ items: [{ id: 0, do: "raise" }], maxAttempts: 3 });
    job.dispatcher.addWorker(await job.addWorker());
    job.closeGate();
    await eventually("the first failure is about to be committed", () => job.commits === 1);
    job.letCommitsPass();
    job.closeGate();
    await eventually("the second failure is about to be committed", () => job.commits === 2);
    expect(await job.errors("batches")).toEqual([{ error_json: null, error_group: null }]);
    job.letCommitsPass();
    await job.settled();
    expect(await job.errors("batches")).toMatchObject([{ error_group: "ValueError: no good: #" }]);
  });
});
