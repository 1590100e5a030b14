/** The input of a job as its row keeps it: the submission without the items, which are in the job's own file. */
import type { JobRow } from "./job-store.ts";

export type StoredInput =
  | { kind: "items"; batch_size: number; batch_count: number }
  | { kind: "lines"; batch_size: number; store_paths: string[]; batch_count?: undefined };

export function storedInput(job: Pick<JobRow, "submission_json">): StoredInput {
  return JSON.parse(job.submission_json) as StoredInput;
}
