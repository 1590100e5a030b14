/** Opens the output of a job that is about to run; undefined if it has none. */
import { type DiskWait, makeDirectories, whenDiskWorks } from "../../base/disk-full.ts";
import { rowsDirectory } from "../../contracts/data-layout.ts";
import { RowsIndex } from "../rows/rows-by-batch.ts";
import { Spool } from "../rows/spool.ts";
import { JobOutput, type JobOutputOptions } from "./job-output.ts";
import { findOutput } from "./job-outputs.ts";

export interface OpenOutputOptions
  extends Omit<JobOutputOptions, "prefix" | "compression" | "spool" | "index"> {
  dataDir: string;
  diskWait: DiskWait;
}

export async function openOutput(options: OpenOutputOptions): Promise<JobOutput | undefined> {
  const { db, jobId, dataDir, diskWait } = options;
  const output = await findOutput(db, jobId);
  if (output === undefined) return undefined;
  const place = { prefix: output.prefix, compression: output.compression };
  return whenDiskWorks(async () => {
    const directory = rowsDirectory(dataDir, jobId);
    makeDirectories(directory);
    const index = await RowsIndex.open(directory, options.epoch);
    const spool = Spool.open(directory, { lastFile: index.lastFile, epoch: options.epoch }, diskWait);
    return new JobOutput({ ...options, ...place, spool, index });
  }, diskWait);
}
