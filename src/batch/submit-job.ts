/** Records a job durably; its answer may be sent when `submitJob` resolves. Enqueuing comes after (decision 3.1). */
import { mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { timestamp } from "../base/clock.ts";
import { newUlid } from "../base/ids.ts";
import type { ReachKillPoint } from "../base/kill-points.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Database } from "../database/database.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { selectFiles } from "../object-store/select-files.ts";
import { jobDirectory, ownItemsFile } from "./job-input.ts";
import { insertJob } from "./job-store.ts";
import { type ParsedSubmission, parseSubmission } from "./parse-submission.ts";
import type { StoredInput } from "./stored-input.ts";

export interface SubmitDeps {
  db: Database;
  store: ObjectStore;
  dataDir: string;
  reach: ReachKillPoint;
}

/** Returns the new job's id. Throws ServiceError when the submission is not valid. */
export async function submitJob(
  deps: SubmitDeps,
  api: { name: string; api_id: string },
  body: Buffer,
): Promise<string> {
  const submission = parseSubmission(body);
  if (submission.input.kind === "lines") await assertAnyFile(deps.store, submission.input.store_paths);
  const jobId = newUlid();
  if (submission.input.kind === "items") await writeItems(deps.dataDir, jobId, submission.input.lines);
  deps.reach("submission-before-commit");
  try {
    await insertJob(deps.db, {
      job_id: jobId,
      api_name: api.name,
      api_id: api.api_id,
      submission_json: JSON.stringify(toStored(submission)),
      config_json: submission.configText,
      workers: submission.workers,
      timeout_s: submission.timeout ?? null,
      created_time: timestamp(),
    });
  } catch (error) {
    await rm(jobDirectory(deps.dataDir, jobId), { recursive: true, force: true });
    throw error;
  }
  deps.reach("submission-after-commit");
  return jobId;
}

function toStored({ input }: ParsedSubmission): StoredInput {
  const { batch_size } = input;
  if (input.kind === "lines") return { kind: "lines", batch_size, store_paths: input.store_paths };
  return { kind: "items", batch_size, batch_count: Math.ceil(input.count / batch_size) };
}

/** Each item on a line of its own, on the disk before the job is recorded: the file, and the names that lead to it. */
async function writeItems(dataDir: string, jobId: string, lines: Buffer): Promise<void> {
  const directory = jobDirectory(dataDir, jobId);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = await open(ownItemsFile(dataDir, jobId), "wx", 0o600);
  try {
    await file.writeFile(lines);
    await file.sync();
  } finally {
    await file.close();
  }
  for (const parent of [directory, dirname(directory)]) await syncDirectory(parent);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function assertAnyFile(store: ObjectStore, storePaths: string[]): Promise<void> {
  for await (const file of selectFiles(store, storePaths)) {
    // Opening it shows now, rather than in a failed job, that it may not be read.
    const object = await store.open(file.path).catch((error: NodeJS.ErrnoException) => {
      if (error instanceof ServiceError) throw error;
      throw new ServiceError("invalid_request", `${file.path} cannot be read: ${error.message}`, {
        cause: error,
      });
    });
    await object.close();
    return;
  }
  throw new ServiceError(
    "no_files_found",
    `no file matches store_paths: ${storePaths.join(", ")}; an entry selects all files whose path begins with it`,
  );
}
