/** A job's own items: short ones are in the database, longer ones in the job's own file. */
import { existsSync } from "node:fs";
import { beforeEach, expect, it } from "vitest";
import { ITEMS_PATH, itemsInFiles, writeItemsFile } from "../../../src/batch/records/items-file.ts";
import { jobInput } from "../../../src/batch/records/job-input.ts";
import { submitJob } from "../../../src/batch/submit/submit-job.ts";
import { itemsFile, jobDirectory } from "../../../src/contracts/data-layout.ts";
import { ITEMS_STORED_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";
import type { Database } from "../../../src/database/database.ts";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

const NO_STORE = undefined as unknown as ObjectStore;
let dataDir: string;
let db: Database;

beforeEach(async () => {
  const temporary = await temporaryDatabase();
  db = temporary.db;
  dataDir = temporary.directory;
  return temporary.remove;
});

async function submit(items: string): Promise<string> {
  const deps = {
    ...{ db, items: itemsInFiles(dataDir), store: NO_STORE, reach: () => {} },
    assertDeployed: async () => null,
    isQueueMissing: async () => false,
    hasConditions: async () => true,
    assertMayBegin: async () => {},
    takePlace: async () => () => {},
  };
  const body = Buffer.from(`{"workers": 1, "item_list": {"items": ${items}, "batch_size": 1}}`);
  const sent = { body, idempotencyKey: undefined, sender: "s", over: new AbortController().signal };
  return (await submitJob(deps, { name: "api", api_id: "v1" }, sent)).job_id;
}

async function ownItems(jobId: string): Promise<string> {
  const object = await jobInput({ db, jobId, store: NO_STORE, items: itemsInFiles(dataDir) }).open(
    ITEMS_PATH,
  );
  const content = Buffer.alloc(object.bytes + 10);
  // In two pieces, of which the second asks for more than there is.
  expect(await object.read(content, 0, 0, 3)).toBe(3);
  expect(await object.read(content, 3, 3, object.bytes)).toBe(object.bytes - 3);
  expect(await object.read(content, 0, object.bytes, 10)).toBe(0);
  await object.close();
  return content.toString("utf8", 0, object.bytes);
}

it("short items need no file, and come back as they were written", async () => {
  const jobId = await submit('[1.10, "é\\u0000\\ud800", {"a": 12345678901234567890}]');
  expect(existsSync(jobDirectory(dataDir, jobId))).toBe(false);
  expect(await ownItems(jobId)).toBe('1.10\n"é\\u0000\\ud800"\n{"a":12345678901234567890}\n');
});

it("longer ones are in the job's own file", async () => {
  const text = "x".repeat(ITEMS_STORED_BYTES_MAX - 3);
  expect(existsSync(jobDirectory(dataDir, await submit(`["${text}"]`)))).toBe(false);
  const jobId = await submit(`["${text}x"]`);
  expect(existsSync(itemsFile(dataDir, jobId))).toBe(true);
  expect(await ownItems(jobId)).toBe(`"${text}x"\n`);
});

it("so are those of a former release, of any length", async () => {
  const jobId = await submit("[1, 2]");
  await db.run("UPDATE job_submissions SET submission_json = ?", [
    '{"kind": "items", "batch_size": 1, "batch_count": 2}',
  ]);
  await writeItemsFile(itemsFile(dataDir, jobId), Buffer.from("1\n2\n"));
  expect(await ownItems(jobId)).toBe("1\n2\n");
});
