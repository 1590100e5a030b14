/** Opens the output of a job that is about to run; undefined if it has none. */
import { type DiskWait, makeDirectories, whenDiskWorks } from "../../base/disk-full.ts";
import { type Admit, OUTPUTS } from "../../base/files/leave-free.ts";
import { rowsDirectory } from "../../contracts/data-layout.ts";
import { SERVER_PREFIX } from "../../object-store/backends/server-store.ts";
import { uncountLostRows } from "../lost-rows/lost-rows.ts";
import type { JobRow } from "../records/job-rows.ts";
import { hasIndex } from "../rows/own-file.ts";
import { RowsIndex } from "../rows/rows-by-batch.ts";
import { Spool } from "../rows/spool.ts";
import { JobOutput, type JobOutputOptions } from "./job-output.ts";
import { findOutput } from "./job-outputs.ts";
import { lastPart } from "./part-rows.ts";

/** The counts of the job's row, in memory. */
type Counted = Pick<JobRow, "succeeded" | "failed_batches">;

export interface OpenOutputOptions
  extends Omit<JobOutputOptions, "prefix" | "compression" | "spool" | "index" | "admitPart"> {
  dataDir: string;
  diskWait: DiskWait;
  /** Waits until so many bytes may be written to the disk of the data directory. */
  admit: Admit;
  isOnDisk: { outputs: boolean };
  /** Writes a line to the job's own log. */
  jobLog: (jobId: string, line: string) => void;
}

/** Batches whose rows are gone count as never run; `job` has the new counts then. */
export async function openOutput(options: OpenOutputOptions, job: Counted): Promise<JobOutput | undefined> {
  const { db, jobId, dataDir, diskWait, admit } = options;
  const output = await findOutput(db, jobId);
  if (output === undefined) return undefined;
  const place = { prefix: output.prefix, compression: output.compression };
  return whenDiskWorks(async () => {
    const directory = rowsDirectory(dataDir, jobId);
    makeDirectories(directory);
    // Before there is an index: after a kill, the next run sees again that it is gone.
    if (!(await hasIndex(directory))) await uncount(options, job);
    const index = await RowsIndex.open(directory, options.epoch);
    const spool = Spool.open(directory, { lastFile: index.lastFile, epoch: options.epoch }, diskWait, admit);
    const isOnDisk = output.prefix.startsWith(SERVER_PREFIX) && options.isOnDisk.outputs;
    const admitPart = async (bytes: number) => {
      if (isOnDisk) await admit(bytes, OUTPUTS);
    };
    return new JobOutput({ ...options, ...place, admitPart, spool, index });
  }, diskWait);
}

async function uncount(options: OpenOutputOptions, job: Counted): Promise<void> {
  if (job.succeeded + job.failed_batches === 0) return;
  const { db, jobId, jobLog } = options;
  const part = await lastPart(db, jobId);
  const less = await uncountLostRows(options, part?.next_batch ?? 0);
  job.succeeded -= less.succeeded;
  job.failed_batches -= less.failedBatches;
  const batches = less.succeeded + less.failedBatches;
  if (batches > 0)
    jobLog(
      jobId,
      `the predictions of ${batches} batches were on a disk that is gone: these batches run again`,
    );
}
