/** Jobs that have not ended, with their progress and when they will be done. */

import { Progress } from "../../charts/progress.tsx";
import { rate } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { ApiLink, JobLink } from "../../parts/link.tsx";
import { Empty } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status } from "../../parts/status.tsx";
import { Elapsed } from "../../parts/time.tsx";
import type { OverviewJob } from "../../shapes.ts";

export function RunningJobs({ jobs }: { jobs: readonly OverviewJob[] }) {
  if (jobs.length === 0)
    return <Empty title="No job is running" command="quern job submit API job.json --wait" />;
  return (
    <Scroll label="running jobs">
      <table class="wide">
        <thead>
          <tr>
            <th>Job</th>
            <th>API</th>
            <th>Batches</th>
            <th class="number">Left</th>
            <th>Status</th>
            <th class="number">Batches/s</th>
            <th class="number">Workers</th>
            <th class="number">For</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row key={job.job_id} job={job} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ job }: { job: OverviewJob }) {
  return (
    <tr>
      <td>
        <JobLink api={job.api_name} job={job.job_id} />
      </td>
      <td>
        <ApiLink name={job.api_name} />
      </td>
      <td>
        <Progress succeeded={job.succeeded} failed={job.failed} total={job.total_batch_count} />
      </td>
      <td class="number">{job.eta_s === null ? "" : duration(job.eta_s)}</td>
      <td>
        <Status of={job.paused_time === null ? job.status : "paused"} />
        {job.waiting && <p class="small quiet clip">{job.waiting}</p>}
      </td>
      <td class="number">{job.batches_per_s === null ? "" : rate(job.batches_per_s)}</td>
      <td class="number">
        {job.running_workers}/{job.workers}
      </td>
      <td class="number">
        <Elapsed from={job.round_time ?? job.created_time} />
      </td>
    </tr>
  );
}
