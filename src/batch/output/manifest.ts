/** The manifest of a job's output, by which readers go (docs/contract/output.md#manifest). Pure. */
import type { JobStatus } from "../../contracts/jobs.ts";
import type { OutputCompression } from "./job-outputs.ts";
import type { Part } from "./part-rows.ts";

/** Its name below the output's prefix. */
export const MANIFEST = "manifest.json";

export interface Manifest {
  job_id: string;
  api_name: string;
  status: JobStatus;
  /** From 1; a redrive writes the manifest of the next round in place of this one. */
  round: number;
  /** Missing if the parts are plain JSON lines. */
  compression?: "zstd";
  parts: { path: string; rows: number; bytes: number; sha256: string }[];
  /** `partial`: those of the failed ones that have rows, of items that are not guilty; missing if there are none. */
  batches: { total: number; succeeded: number; failed: number; partial?: number };
  rows: number;
}

/** What the database has of a job and its output. */
export interface ManifestSource {
  job_id: string;
  api_name: string;
  round: number;
  compression: OutputCompression;
  total_batch_count: number;
  succeeded: number;
  failed_batches: number;
}

/** The manifest as it is stored. */
export function manifestBytes(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
}

/** Whether the parts have every batch that has rows. `partial`: how many batches failed with some of their items. */
export function hasAll(
  parts: readonly Part[],
  { succeeded }: Pick<ManifestSource, "succeeded">,
  partial: number,
): boolean {
  return batchesIn(parts) === succeeded + partial;
}

function batchesIn(parts: readonly Part[]): number {
  return parts.reduce((sum, { batches }) => sum + batches, 0);
}

/**
 * `parts`: all of them, in order. `partial`: how many batches failed with some of their items. Throws if the parts do not
 * have every batch that has rows, once.
 */
export function manifestOf(
  job: ManifestSource,
  status: JobStatus,
  parts: readonly Part[],
  partial: number,
): Manifest {
  if (!hasAll(parts, job, partial))
    throw new Error(`the parts have ${batchesIn(parts)} batches, but ${job.succeeded + partial} have rows`);
  return {
    job_id: job.job_id,
    api_name: job.api_name,
    status,
    round: job.round,
    ...(job.compression === "none" ? {} : { compression: job.compression }),
    parts: parts.map(({ name: path, rows, bytes, sha256 }) => ({ path, rows, bytes, sha256 })),
    batches: {
      ...{ total: job.total_batch_count, succeeded: job.succeeded, failed: job.failed_batches },
      ...(partial === 0 ? {} : { partial }),
    },
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
  };
}
