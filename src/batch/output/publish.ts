/**
 * Publishes the output of a job whose batches are all settled: its manifest, in place of that of the round before, then
 * the removal of parts that no manifest names. It can be done again after a kill at any step.
 */
import type { ReachKillPoint } from "../../base/kill-points.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { COMPLETE_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import { STORE_LEFTOVERS_MS, STORE_REMOVALS_AT_ONCE } from "../../contracts/limits/stores.ts";
import type { Database } from "../../database/database.ts";
import { SERVER_PREFIX } from "../../object-store/backends/server-store.ts";
import { ConditionFailed, type ObjectStore, type WriteCondition } from "../../object-store/object-store.ts";
import { countPartial } from "../isolate/parts-of-job.ts";
import type { JobRow } from "../records/job-rows.ts";
import { compareObject } from "./compare-object.ts";
import { type OutputRow, setManifest } from "./job-outputs.ts";
import { hasAll, MANIFEST, manifestBytes, manifestOf } from "./manifest.ts";
import { allParts } from "./part-rows.ts";

export interface PublishDeps {
  db: Database;
  /** The store of the output. It waits for one that does not respond until the signal is aborted. */
  patient: (signal: AbortSignal) => ObjectStore;
  /** Aborted when the server stops: leftovers are not removed any more. */
  stopping?: AbortSignal | undefined;
  /** How long leftovers are removed; for tests. */
  leftoversMs?: number;
  reach: ReachKillPoint;
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
}

/** A manifest is never given up. */
const NEVER = new AbortController().signal;

/** Does nothing while batches are not settled, or if the job ends before all parts are written. Throws `output_conflict`. */
export async function publishOutput(
  deps: PublishDeps,
  { job, output, status }: { job: JobRow; output: OutputRow; status: JobStatus },
): Promise<void> {
  const { db, reach } = deps;
  const { job_id, total_batch_count } = job;
  if (total_batch_count === null) return;
  const { compression } = output;
  if (job.succeeded + job.failed_batches < total_batch_count) return;
  const written = await allParts(db, job_id);
  const partial = job.isolates === 1 ? await countPartial(db, job_id) : 0;
  // It ends before the last parts are written: it was stopped meanwhile, or they could not be written.
  if (!COMPLETE_STATUSES.has(status) && !hasAll(written, job, partial)) return;
  const manifest = manifestOf({ ...job, total_batch_count, compression }, status, written, partial);
  reach("manifest-before-put");
  const etag = await putManifest(deps.patient(NEVER), output, manifestBytes(manifest));
  reach("manifest-after-put");
  await setManifest(db, job_id, { etag, round: job.round });
  const names = new Set(written.map(({ name }) => name));
  await removeInTime(deps, output.prefix, names).catch((error: Error) =>
    deps.jobLog(job_id, `parts that the manifest does not name could not be removed: ${error.message}`),
  );
}

/** The output is complete already: a store that lists without end must not keep the job from its end. */
async function removeInTime(
  { patient, stopping, leftoversMs = STORE_LEFTOVERS_MS }: PublishDeps,
  prefix: string,
  named: ReadonlySet<string>,
): Promise<void> {
  const late = new AbortController();
  const leave = (why: string) => late.abort(new Error(why));
  const timer = setTimeout(leave, leftoversMs, `it took more than ${leftoversMs / 1000} s`);
  const onStop = () => leave("the server stops");
  stopping?.addEventListener("abort", onStop);
  if (stopping?.aborted === true) onStop();
  const { signal } = late;
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
    if (signal.aborted) reject(signal.reason as Error);
  });
  ended.catch(() => {});
  try {
    // Some requests cannot be aborted. They end by their own limits.
    await Promise.race([removeOthers(patient(signal), prefix, named, signal), ended]);
  } finally {
    clearTimeout(timer);
    stopping?.removeEventListener("abort", onStop);
  }
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
      if (found.is === "missing") continue;
      // A copy or a restored backup of the server has its own files, with other etags than their rows.
      if (!path.startsWith(SERVER_PREFIX) || found.etag === undefined) throw conflict(path, error);
      return (await store.put(path, body, { etag: found.etag })).etag;
    }
  throw conflict(path);
}

function conflict(path: string, cause?: unknown): ServiceError {
  const message = `${path} was written by something else; move it away, then resume the job`;
  return new ServiceError("output_conflict", message, { cause });
}

/** Parts of kills, and of the rounds before. */
async function removeOthers(
  store: ObjectStore,
  prefix: string,
  named: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  for await (const page of store.list(`${prefix}part-`, { sizes: false, signal })) {
    const others = page.filter(({ path }) => !named.has(path.slice(prefix.length)));
    for (let at = 0; at < others.length; at += STORE_REMOVALS_AT_ONCE) {
      signal.throwIfAborted();
      const some = others.slice(at, at + STORE_REMOVALS_AT_ONCE);
      await Promise.all(some.map(({ path }) => store.remove(path)));
    }
    signal.throwIfAborted();
  }
  await store.removeUnfinished(prefix, signal);
}
