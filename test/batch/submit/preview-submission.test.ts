/** A dry run refuses whatever a submission refuses (docs/contract/submitting.md#dry-run-refuses). */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assertDeployed } from "../../../src/apis/api-reader.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import { saveSubmission, submissionKey } from "../../../src/batch/submit/idempotency.ts";
import { previewSubmission } from "../../../src/batch/submit/preview-submission.ts";
import { type SubmitDeps, submitJob } from "../../../src/batch/submit/submit-job.ts";
import { assertMayBegin } from "../../../src/batch/submit/unfinished-jobs.ts";
import type { ServiceError } from "../../../src/contracts/errors.ts";
import { JOBS_UNFINISHED_MAX } from "../../../src/contracts/limits/jobs.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";
import { UNWRITTEN } from "../../harness/unwritten-store.ts";

const EMPTY: ObjectStore = {
  ...UNWRITTEN,
  parallelListings: () => 1,
  open: () => Promise.reject(new Error("is not opened")),
  list: async function* () {},
};
const items = { items: [{}], batch_size: 1 };
const sent = (body: Buffer, idempotencyKey?: string) => ({
  ...{ body, idempotencyKey, sender: "key" },
  priorityMax: 10,
});
const arn = (name: string) => `arn:aws:sqs:us-east-1:000000000000:${name}`;

describe("a dry run and its submission", () => {
  let directory: string;
  let deps: SubmitDeps;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-preview-"));
    const db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
    const isQueueMissing = async (queue: string) => queue === arn("nobody");
    deps = {
      db,
      store: EMPTY,
      items: itemsInFiles(directory),
      reach: () => {},
      assertDeployed: async () => null,
      isQueueMissing,
      hasConditions: async () => true,
      assertMayBegin: async () => {},
      takePlace: async () => () => {},
    };
  });
  afterEach(async () => {
    await deps.db.close();
    rmSync(directory, { recursive: true });
  });
  const refusal = (asked: Promise<unknown>) =>
    asked.then(
      () => undefined,
      ({ code, message }: { code: string; message: string }) => [code, message],
    );

  it.each<[string, object, key?: string]>([
    [
      "a dead letter queue of SQS that does not exist",
      { queue_dead_letter_queue: { arn: arn("nobody"), max_receive_count: 1 }, item_list: items },
    ],
    [
      "such a queue under its older name",
      { sqs_dead_letter_queue: { arn: arn("nobody"), max_receive_count: 1 }, item_list: items },
    ],
    [
      "a selection without a file",
      { file_path_lister: { store_paths: ["s3://bucket/none"], batch_size: 1 } },
    ],
    ["a submission without an input", {}],
    ["a submission while too many jobs have not ended", { item_list: items, config: { full: true } }],
    ["a priority above what the sender may give", { item_list: items, priority: 11 }],
    ["a key that was used for another body", { item_list: items }, "used"],
  ])("are refused alike: %s", async (_, submission, key) => {
    const body = () => Buffer.from(JSON.stringify({ workers: 1, ...submission }));
    const api = { name: "jobs", api_id: "1" };
    if (body().includes("full"))
      deps.assertMayBegin = async () => assertMayBegin("jobs", 1, JOBS_UNFINISHED_MAX);
    await saveSubmission(
      deps.db,
      await submissionKey("jobs", "used", Buffer.from("{}")),
      "other",
      Date.now(),
    );
    const refused = await refusal(submitJob(deps, api, sent(body(), key)));
    expect(refused).toBeDefined();
    expect(await refusal(previewSubmission(deps, { name: "jobs" }, sent(body(), key)))).toEqual(refused);
  });

  it("make no job, and leave no items, if the API was deleted meanwhile", async () => {
    deps.assertDeployed = assertDeployed;
    const body = Buffer.from(JSON.stringify({ workers: 1, item_list: items }));
    const [code] = (await refusal(submitJob(deps, { name: "jobs", api_id: "1" }, sent(body))))!;
    expect(code).toBe("api_not_found");
    expect(await deps.db.all("SELECT job_id FROM jobs")).toEqual([]);
    expect(
      readdirSync(directory, { recursive: true }).filter((name) => String(name).includes("items")),
    ).toEqual([]);
  });

  it("pass if no place is free for so long that the first match may be late", async () => {
    const submission = { workers: 1, file_path_lister: { store_paths: ["s3://bucket/none"], batch_size: 1 } };
    const body = Buffer.from(JSON.stringify(submission));
    const late = { ...deps, takePlace: async () => undefined };
    await previewSubmission(late, { name: "jobs" }, sent(body));
    const left = AbortSignal.abort();
    await expect(previewSubmission(late, { name: "jobs" }, { ...sent(body), left })).rejects.toThrow(
      "left before",
    );
  });

  it("give back the place that they took to look for files", async () => {
    let taken = 0;
    const takePlace = async () => {
      taken++;
      return () => {
        taken--;
      };
    };
    const submission = { workers: 1, file_path_lister: { store_paths: ["s3://bucket/none"], batch_size: 1 } };
    const body = Buffer.from(JSON.stringify(submission));
    const counting = { ...deps, takePlace };
    await expect(previewSubmission(counting, { name: "jobs" }, sent(body))).rejects.toThrow("no file");
    expect(taken).toBe(0);
  });

  it("refuse a store that ignores the conditions of writes, with the place and the cure", async () => {
    const submission = { workers: 1, item_list: items, output: { store_path: "s3://bucket/out" } };
    const body = Buffer.from(JSON.stringify(submission));
    const api = { name: "jobs" };
    const careless = { ...deps, hasConditions: async () => false };
    const error = await previewSubmission(careless, api, sent(body)).catch((refused) => refused);
    expect(error).toMatchObject({
      code: "invalid_request",
      details: {
        fields: [{ pointer: "/output/store_path", detail: expect.stringContaining('or "quern:"') }],
      },
    });
    await previewSubmission(deps, api, sent(body));
  });

  it.each(["queue_dead_letter_queue", "sqs_dead_letter_queue"])(
    "point to a queue that does not exist by the name that was sent: %s",
    async (name) => {
      const submission = {
        workers: 1,
        [name]: { arn: arn("nobody"), max_receive_count: 1 },
        item_list: items,
      };
      const error = await previewSubmission(
        deps,
        { name: "jobs" },
        sent(Buffer.from(JSON.stringify(submission))),
      ).catch((refused: ServiceError) => refused);
      expect(error).toMatchObject({ details: { fields: [{ pointer: `/${name}/arn` }] } });
    },
  );

  it("are taken alike with a queue that exists; a dry run makes no job", async () => {
    const queue_dead_letter_queue = { arn: arn("letters"), max_receive_count: 1 };
    const body = Buffer.from(JSON.stringify({ workers: 1, queue_dead_letter_queue, item_list: items }));
    const preview = await previewSubmission(deps, { name: "jobs" }, sent(body, "new"));
    expect(preview.batchCount(0)).toBe(1);
    expect(await deps.db.all("SELECT job_id FROM jobs")).toEqual([]);
    expect(existsSync(join(directory, "jobs"))).toBe(false);
  });
});
