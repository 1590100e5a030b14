/** Jobs, newest first, of one API or of all; and what can be done with all that match. */
import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address, setQuery } from "../../address/address.ts";
import { Progress } from "../../charts/progress.tsx";
import { whole } from "../../format/numbers.ts";
import { overview } from "../../live/live.ts";
import { Choice, Search } from "../../parts/filters.tsx";
import { ApiLink, JobLink } from "../../parts/link.tsx";
import { More, usePages } from "../../parts/more.tsx";
import { Empty, ErrorNote, Loading } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status, statusWords } from "../../parts/status.tsx";
import { Elapsed, Time } from "../../parts/time.tsx";
import { withQuery } from "../../server/request.ts";
import type { JobPage, JobStatusRecord } from "../../shapes.ts";
import { BulkActions } from "./bulk-actions.tsx";
import { countsOf } from "./job-counts.ts";

const STATUSES = [
  "status_running",
  "status_enqueuing",
  "status_succeeded",
  "status_completed_with_failures",
  "status_stopped",
  "status_timed_out",
  "status_worker_error",
  "status_worker_oom",
  "status_enqueue_failed",
  "status_unexpected_error",
] as const;
const PAGE = 50;

/** Whenever a job begins, ends or is changed, this is another text. */
const jobCounts = computed(() => JSON.stringify(overview.value?.job_counts));

/** `api`: only its jobs. */
export function JobList({ api }: { api?: string }) {
  const { query } = address.value;
  const filter = {
    api: api ?? query.get("api") ?? undefined,
    status: query.get("status") ?? undefined,
    search: query.get("search") ?? undefined,
    created_after: inUtc(query.get("after")),
    created_before: inUtc(query.get("before")),
  };
  const path = withQuery("/-/jobs", { ...filter, limit: PAGE });
  const pages = usePages<JobPage>(path, jobCounts.value);
  const count = pages.pages[0]?.count;
  const isOfOne = api !== undefined;
  const table = useMemo(() => {
    const jobs = pages.pages.flatMap((page) => page.jobs);
    return jobs.length > 0 && <JobTable jobs={jobs} isOfOne={isOfOne} />;
  }, [pages.pages, isOfOne]);
  return (
    <>
      <div class="filters">
        <Search
          label="API or job id"
          value={filter.search ?? ""}
          onChange={(search) => setQuery({ search })}
        />
        <Choice
          label="Status"
          value={filter.status ?? ""}
          options={[["", "all"], ...STATUSES.map((status) => [status, statusWords(status)] as const)]}
          onChange={(status) => setQuery({ status })}
        />
        <TimeField label="Submitted after" name="after" value={query.get("after")} />
        <TimeField label="Submitted before" name="before" value={query.get("before")} />
        <span class="quiet" aria-live="polite">
          {count === undefined ? "" : `${whole(count)} ${count === 1 ? "job" : "jobs"}`}
        </span>
      </div>
      {count !== undefined && count > 0 && <BulkActions filter={filter} count={count} after={pages.again} />}
      {pages.error && <ErrorNote error={pages.error} again={pages.again} />}
      {pages.pages.length === 0 && pages.isLoading && <Loading lines={6} />}
      {count === 0 && <NoJobs filter={filter} />}
      {table}
      <More of={pages} />
    </>
  );
}

function NoJobs({ filter: { api, ...others } }: { filter: Record<string, string | undefined> }) {
  if (Object.values(others).some((value) => value !== undefined))
    return <Empty title="No job matches these filters" />;
  return (
    <Empty title="No job yet" command={`quern job submit ${api ?? "API"} job.json --wait`}>
      A job sends many inputs to a batch API. Its file says how many workers, and where the inputs are.
    </Empty>
  );
}

function TimeField({ label, name, value }: { label: string; name: string; value: string | null }) {
  return (
    <label class="field">
      {label}
      <input
        type="datetime-local"
        value={value ?? ""}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

function inUtc(local: string | null): string | undefined {
  if (local === null) return undefined;
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function JobTable({ jobs, isOfOne }: { jobs: readonly JobStatusRecord[]; isOfOne: boolean }) {
  return (
    <Scroll label="jobs">
      <table class="wide">
        <thead>
          <tr>
            <th>Job</th>
            {!isOfOne && <th>API</th>}
            <th>Status</th>
            <th>Batches</th>
            <th>Submitted</th>
            <th class="number">Took</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row key={job.job_id} job={job} isOfOne={isOfOne} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ job, isOfOne }: { job: JobStatusRecord; isOfOne: boolean }) {
  return (
    <tr>
      <td>
        <JobLink api={job.api_name} job={job.job_id} />
      </td>
      {!isOfOne && (
        <td>
          <ApiLink name={job.api_name} />
        </td>
      )}
      <td>
        <Status of={job.paused_time && !job.end_time ? "paused" : job.status} />
        {(job.reason ?? job.waiting) && <p class="small quiet clip">{job.reason?.message ?? job.waiting}</p>}
      </td>
      <td>
        <Progress {...countsOf(job)} />
      </td>
      <td>
        <Time at={job.created_time} isAgo />
      </td>
      <td class="number">
        <Elapsed from={job.round_time ?? job.created_time} to={job.end_time} />
        {job.round !== undefined && <div class="small quiet">round {job.round}</div>}
      </td>
    </tr>
  );
}
