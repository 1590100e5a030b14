/** The rows of a job that are committed, and with `follow` those that come later, until the job has ended. */
import { delay } from "../../base/clock.ts";
import type { Jobs } from "../../batch/jobs.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { isTerminal } from "../../batch/records/job-status.ts";
import { mayHaveMore } from "../../batch/results/committed-range.ts";
import { RESULTS_POLL_MS } from "../../contracts/limits/outputs.ts";

/** The job's row and its committed rows, as `Jobs` has them. */
export interface RowsSource {
  records: Pick<Jobs["records"], "get">;
  results: Pick<Jobs["results"], "committed">;
}

const NOTHING = Buffer.alloc(0);

/**
 * The rows of the batches from `first` to the one before `end`. A poll that finds the counts of the job as they were
 * reads nothing else, and yields no bytes, so that a reader who has left ends the generator then.
 */
export async function* rowsOf(
  jobs: RowsSource,
  { api_name, job_id }: Pick<JobRow, "api_name" | "job_id">,
  { first, end }: { first: number; end: number },
  isFollowed: boolean,
): AsyncGenerator<Buffer> {
  let before: JobRow | undefined;
  for (let next = first; next < end; ) {
    const job = await jobs.records.get(api_name, job_id);
    if (before === undefined || mayHaveMore(job, before))
      for await (const rows of jobs.results.committed(job, next, end)) {
        yield rows.bytes;
        next = rows.next;
      }
    if (!isFollowed || isTerminal(job.status)) return;
    before = job;
    yield NOTHING;
    await delay(RESULTS_POLL_MS);
  }
}
