/** Reads the outputs of jobs for the control plane, whether they run or have ended. It changes nothing. */
import { rowsDirectory } from "../../contracts/data-layout.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { JobOutputProgress } from "../../contracts/jobs.ts";
import type { Database } from "../../database/database.ts";
import { SERVER_PREFIX } from "../../object-store/backends/server-store.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { countPartial } from "../isolate/parts-of-job.ts";
import { compareObject, type Found } from "../output/compare-object.ts";
import { findOutput, type OutputRow } from "../output/job-outputs.ts";
import { MANIFEST, type Manifest, manifestBytes, manifestOf } from "../output/manifest.ts";
import { allParts, type Part, partTotals } from "../output/part-rows.ts";
import type { JobRow } from "../records/job-rows.ts";
import { isTerminal } from "../records/job-status.ts";
import { type CommittedRows, committedRows } from "./committed-rows.ts";
import { type CheckedOutput, type CheckedPart, OutputCheck } from "./verify.ts";

function noManifest({ job_id, api_name, status }: JobRow): ServiceError {
  const cure = isTerminal(status)
    ? `\`quern job resume ${api_name} ${job_id}\` runs the batches that are left`
    : "wait until the job has ended";
  return new ServiceError(
    "wrong_state",
    `the output of job ${job_id} has no manifest yet (${status}); ${cure}`,
  );
}

/** The retention has removed what the server knew of the output, and an output that the server kept. */
function removed({ job_id, pruned_time }: JobRow, { prefix }: OutputRow): ServiceError {
  const rest = prefix.startsWith(SERVER_PREFIX)
    ? "with the job's other data"
    : `so only its objects are left; ${prefix}${MANIFEST} names them`;
  return new ServiceError(
    "no_output",
    `the server removed the output of job ${job_id} at ${pruned_time}, after its retention, ${rest}`,
  );
}

/** An output as the database has it. `stored`: what is in the place of its manifest. */
export interface WrittenOutput {
  prefix: string;
  parts: readonly Part[];
  manifest: Manifest;
  stored: Found["is"];
}

export class JobResults {
  private readonly source: { db: Database; store: ObjectStore; dataDir: string };

  constructor(source: { db: Database; store: ObjectStore; dataDir: string }) {
    this.source = source;
  }

  /** Throws `no_output`. */
  async assertOutput(job: JobRow): Promise<OutputRow> {
    const output = await findOutput(this.source.db, job.job_id);
    if (output === undefined)
      throw new ServiceError(
        "no_output",
        `job ${job.job_id} keeps no predictions; submit it with "output": {} to keep them in the server, or {"store_path": "s3://…"}`,
      );
    if (job.pruned_time !== null) throw removed(job, output);
    return output;
  }

  /** Where the output is, and how far; undefined if the job has none. */
  async progress({ job_id, round }: JobRow): Promise<JobOutputProgress | undefined> {
    const { db } = this.source;
    const output = await findOutput(db, job_id);
    if (output === undefined) return undefined;
    const totals = await partTotals(db, job_id);
    return { path: output.prefix, ...totals, has_manifest: output.manifest_round === round };
  }

  /**
   * What was written, and whether the manifest is still there. It is little work: `verify` does the rest. Throws
   * `no_output`, and `wrong_state` for a job whose output has no manifest.
   */
  async written(job: JobRow): Promise<WrittenOutput> {
    const { db, store } = this.source;
    const { prefix, compression, manifest_round } = await this.assertOutput(job);
    const { total_batch_count } = job;
    if (manifest_round !== job.round || total_batch_count === null) throw noManifest(job);
    const partial = job.isolates === 1 ? await countPartial(db, job.job_id) : 0;
    const parts = await allParts(db, job.job_id);
    const manifest = manifestOf({ ...job, total_batch_count, compression }, job.status, parts, partial);
    const stored = await compareObject(store, `${prefix}${MANIFEST}`, manifestBytes(manifest));
    return { prefix, parts, manifest, stored: stored.is };
  }

  /**
   * Reads the output again, part by part, and compares it with what was written. The last element has no path. Between
   * two chunks of a part it yields undefined, so that a part of gigabytes can be left.
   */
  async *verify({
    prefix,
    parts,
    manifest,
    stored,
  }: WrittenOutput): AsyncGenerator<CheckedPart | CheckedOutput | undefined> {
    const check = new OutputCheck(this.source.store, prefix);
    for (const part of parts) yield yield* check.part(part);
    yield check.whole(manifest, stored);
  }

  /** The rows of the batches from `first` to the one before `end`, as far as they are committed. Throws `no_output`. */
  async *committed(job: JobRow, first: number, end: number): AsyncGenerator<CommittedRows> {
    const { db, store, dataDir } = this.source;
    const { prefix } = await this.assertOutput(job);
    const { job_id: jobId } = job;
    const isRunning = !isTerminal(job.status);
    yield* committedRows(
      { db, store, rowsDirectory: rowsDirectory(dataDir, jobId), jobId, prefix, isRunning },
      first,
      end,
    );
  }
}
