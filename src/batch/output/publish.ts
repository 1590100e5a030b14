/**
 * Publishes the output of a job whose batches are all settled: its manifest, in place of that of the round before, then
 * the removal of parts that no manifest names. It can be done again after a kill at any step.
 */
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { JobStatus } from "../../contracts/jobs.ts";
import type { Database } from "../../database/database.ts";
import { ConditionFailed, type ObjectStore, type WriteCondition } from "../../object-store/object-store.ts";
import { countPartial } from "../isolate/isolated-rows.ts";
import type { JobRow } from "../records/job-rows.ts";
import { compareObject } from "./compare-object.ts";
import { findOutput, type OutputRow, setManifest } from "./job-outputs.ts";
import { hasAll, MANIFEST, manifestBytes, manifestOf } from "./manifest.ts";
import { allParts } from "./part-rows.ts";

export interface PublishDeps {
  db: Database;
  store: ObjectStore;
  reach: ReachKillPoint;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
}

/** Does nothing for a job without output, or with batches that are not settled. Throws `output_conflict`. */
export async function publishOutput(deps: PublishDeps, job: JobRow, status: JobStatus): Promise<void> {
  const { db, reach } = deps;
  const { job_id, total_batch_count } = job;
  const output = await findOutput(db, job_id);
  if (output === undefined || total_batch_count === null) return;
  const { compression } = output;
  if (job.succeeded + job.failed_batches < total_batch_count) return;
  const written = await allParts(db, job_id);
  const partial = job.isolates === 1 ? await countPartial(db, job_id) : 0;
  // The rest of the parts could not be written, which is the reason of this end.
  if (status === "status_unexpected_error" && !hasAll(written, job, partial)) return;
  const manifest = manifestOf({ ...job, total_batch_count, compression }, status, written, partial);
  reach("manifest-before-put");
  const etag = await putManifest(deps.store, output, manifestBytes(manifest));
  reach("manifest-after-put");
  await setManifest(db, job_id, { etag, round: job.round });
  const names = new Set(written.map(({ name }) => name));
  await removeOthers(deps.store, output.prefix, names).catch((error: Error) =>
    deps.jobLog(job_id, `parts that the manifest does not name could not be removed: ${error.message}`),
  );
}

/** Resolves to the manifest's etag. A put whose response was lost has written it: what is there is compared. */
async function putManifest(
  store: ObjectStore,
  { prefix, manifest_etag }: OutputRow,
  body: Buffer,
): Promise<string> {
  const path = `${prefix}${MANIFEST}`;
  const conditions: WriteCondition[] = manifest_etag === null ? [] : [{ etag: manifest_etag }];
  // Somebody may have removed the manifest of the round before, or moved it away.
  for (const condition of [...conditions, "absent" as const])
    try {
      return (await store.put(path, body, condition)).etag;
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error;
      const found = await compareObject(store, path, body);
      if (found.is === "same") return found.etag;
      if (found.is === "other") throw conflict(path, error);
    }
  throw conflict(path);
}

function conflict(path: string, cause?: unknown): ServiceError {
  const message = `${path} was written by something else; move it away, then resume the job`;
  return new ServiceError("output_conflict", message, { cause });
}

/** Parts of kills, and of the rounds before. */
async function removeOthers(store: ObjectStore, prefix: string, named: ReadonlySet<string>): Promise<void> {
  for await (const page of store.list(`${prefix}part-`, { sizes: false }))
    for (const { path } of page) if (!named.has(path.slice(prefix.length))) await store.remove(path);
  await store.removeUnfinished(prefix);
}
