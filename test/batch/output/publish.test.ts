/** The end of an output whose store lists without an end: the manifest counts, the rest is left. */

import { mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findOutput, insertOutput } from "../../../src/batch/output/job-outputs.ts";
import { publishOutput } from "../../../src/batch/output/publish.ts";
import type { JobRow } from "../../../src/batch/records/job-rows.ts";
import type { JobStatus } from "../../../src/contracts/jobs.ts";
import { STORE_UPLOAD_PAGES_MAX } from "../../../src/contracts/limits/stores.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { SERVER_PREFIX, ServerStore } from "../../../src/object-store/backends/server-store.ts";
import { FileStore } from "../../../src/object-store/files/file-store.ts";
import { PatientStore } from "../../../src/object-store/patient-store.ts";
import { type AnsweringStores, answeringStores } from "../../harness/answering-stores.ts";

const JOB = { job_id: "job", total_batch_count: 0, succeeded: 0, failed_batches: 0, round: 1 } as JobRow;

let directory: string;
let db: Database;
let stores: AnsweringStores;
let gets = 0;
let objects: (request: number) => string;
let uploads: (request: number) => string;
const lines: string[] = [];

function answer({ method, url }: IncomingMessage, response: ServerResponse): void {
  if (method !== "GET") return void response.writeHead(200, { etag: '"1"' }).end();
  gets++;
  response.end(url!.includes("uploads") ? uploads(gets) : objects(gets));
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "quern-publish-"));
  db = openSqliteDatabase(join(directory, "quern.db"));
  await migrate(db);
  await insertOutput(db, { job_id: "job", prefix: "s3://bucket/out/", compression: "none" });
  stores = await answeringStores(answer);
  gets = 0;
  lines.length = 0;
  objects = () => "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>";
  uploads = () => "<ListMultipartUploadsResult></ListMultipartUploadsResult>";
});
afterEach(async () => {
  stores.close();
  await db.close();
  rmSync(directory, { recursive: true });
});

const uploadsUntil = (key: string) =>
  `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>${key}</NextKeyMarker></ListMultipartUploadsResult>`;
const numbered = (request: number) => `out/part-${String(request).padStart(8, "0")}`;

async function published(stopping?: AbortSignal, leftoversMs?: number): Promise<void> {
  const patient = (signal: AbortSignal) => new PatientStore(stores.s3, { onWait: () => {}, signal });
  const jobLog = (_: string, line: string) => lines.push(line);
  const limits = leftoversMs === undefined ? {} : { leftoversMs };
  const deps = { db, patient, reach: () => {}, jobLog, stopping, ...limits };
  const output = (await findOutput(db, "job"))!;
  await publishOutput(deps, { job: JOB, output, status: "status_succeeded" });
  expect((await findOutput(db, "job"))!.manifest_round).toBe(1);
}

it("has no manifest if the job is stopped before the last part is written", async () => {
  const deps = { db, patient: () => stores.s3, reach: () => {}, jobLog: () => {} };
  const job = { ...JOB, total_batch_count: 3, succeeded: 3 };
  const publish = async (status: JobStatus) =>
    publishOutput(deps, { job, output: (await findOutput(db, "job"))!, status });
  for (const status of ["status_stopped", "status_timed_out", "status_unexpected_error"] as const)
    await publish(status);
  expect((await findOutput(db, "job"))!.manifest_round).toBeNull();
  await expect(publish("status_succeeded")).rejects.toThrow("the parts have 0 batches, but 3 have rows");
});

it("ends in time if the store always has another page of objects", async () => {
  objects = (request) =>
    `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${request}</NextContinuationToken>` +
    `<Contents><Key>${numbered(request)}</Key><Size>1</Size></Contents></ListBucketResult>`;
  await published(undefined, 300);
  expect(lines).toEqual([expect.stringMatching(/manifest does not name .* it took more than 0.3 s/)]);
});

it("ends in time if the store does not respond any more", async () => {
  const silent = new Promise<never>(() => {});
  const list = stores.s3.list.bind(stores.s3);
  stores.s3.list = async function* (...args) {
    yield* list(...args);
    await silent;
  };
  await published(undefined, 300);
  expect(lines).toEqual([expect.stringContaining("it took more than 0.3 s")]);
});

it("ends after a number of pages of uploads", async () => {
  uploads = (request) => uploadsUntil(numbered(request));
  await published();
  expect(lines).toEqual([expect.stringContaining(`more than ${STORE_UPLOAD_PAGES_MAX} pages of uploads`)]);
  expect(gets).toBe(STORE_UPLOAD_PAGES_MAX + 1);
});

it("ends at a page of uploads that does not continue after the one before", async () => {
  uploads = (request) => uploadsUntil(numbered(100 - request));
  await published();
  expect(lines).toEqual([expect.stringContaining("does not continue after the page before")]);
  expect(gets).toBe(3);
});

it("ends at once if the server stops", async () => {
  const stopping = new AbortController();
  uploads = (request) => {
    if (request === 20) stopping.abort();
    return uploadsUntil(numbered(request));
  };
  await published(stopping.signal);
  expect(lines).toEqual([expect.stringContaining("the server stops")]);
  expect(gets).toBeLessThan(25);
});

it("replaces the manifest of a server whose files were restored, and no other store's", async () => {
  const places = join(realpathSync(directory), "outputs");
  const files = new FileStore([{ path: realpathSync(directory), isReadOnly: false }], directory, undefined);
  const stored = { server: new ServerStore(files, SERVER_PREFIX, `file://${places}/`), file: files };
  const prefixes = { server: `${SERVER_PREFIX}job/`, file: `file://${places}/job/` };
  for (const kind of ["server", "file"] as const) {
    await db.run("DELETE FROM job_outputs");
    await insertOutput(db, { job_id: "job", prefix: prefixes[kind], compression: "none" });
    const deps = { db, patient: () => stored[kind], reach: () => {}, jobLog: () => {} };
    const publish = async (round: number) => {
      const job = { ...JOB, round };
      await publishOutput(deps, { job, output: (await findOutput(db, "job"))!, status: "status_succeeded" });
    };
    await publish(1);
    const manifest = join(places, "job", "manifest.json");
    const copy = `${manifest}.copy`;
    writeFileSync(copy, `${readFileSync(manifest, "utf8")} `);
    renameSync(copy, manifest);
    if (kind === "server") await publish(2);
    else await expect(publish(2)).rejects.toMatchObject({ code: "output_conflict" });
    expect((await findOutput(db, "job"))!.manifest_round).toBe(kind === "server" ? 2 : 1);
    rmSync(places, { recursive: true });
  }
});
