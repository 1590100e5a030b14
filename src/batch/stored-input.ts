/** The input of a job as its row keeps it: the submission without the items, which are in the job's own file. */
import type { FileSelection } from "../object-store/select-files.ts";
import type { JobRow } from "./job-store.ts";

export type StoredInput =
  | { kind: "items"; batch_size: number; batch_count: number }
  | ({ kind: "lines" | "paths"; batch_size: number; batch_count?: undefined } & FileSelection);

export function storedInput(job: Pick<JobRow, "submission_json">): StoredInput {
  return JSON.parse(job.submission_json) as StoredInput;
}
