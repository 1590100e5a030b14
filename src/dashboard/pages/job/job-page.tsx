/** One job: how far it is, why it is as it is, what failed, and what repairs it. */
import { overview } from "../../live/live.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Findings } from "../../parts/findings.tsx";
import { ApiLink, Link } from "../../parts/link.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { openTab, type Tab, Tabs } from "../../parts/tabs.tsx";
import { Words } from "../../parts/words.tsx";
import { segment } from "../../server/request.ts";
import { type Resource, useResource } from "../../server/use-resource.ts";
import type { DescribedApi, JobEnvelope, OverviewJob } from "../../shapes.ts";
import { JobPlots } from "../api/api-plots.tsx";
import { Failures } from "./failures.tsx";
import { JobActions } from "./job-actions.tsx";
import { JobSummary } from "./job-summary.tsx";
import { Results } from "./results.tsx";
import { Rounds } from "./rounds.tsx";
import { Submission } from "./submission.tsx";
import { Workers } from "./workers.tsx";

const REFRESH_MS = 5000;

export function JobPage({ api, job }: { api: string; job: string }) {
  // Where the API is: its jobs are below its own endpoint, which is its name unless its file says another.
  const described = useResource<DescribedApi>(`/-/apis/${segment(api)}`);
  const row = overview.value?.jobs.find(({ job_id }) => job_id === job);
  const path = `${described.value?.path ?? `/${segment(api)}`}/${segment(job)}`;
  // The stream tells of the running jobs; others rarely change.
  const version = row ? JSON.stringify(row) : "not running";
  const envelope = useResource<JobEnvelope>(path, { version, everyMs: REFRESH_MS });
  return (
    <Loaded resource={described} lines={8}>
      {() => <Known {...{ api, job, path, row, version, envelope }} />}
    </Loaded>
  );
}

interface KnownProps {
  api: string;
  job: string;
  path: string;
  row: OverviewJob | undefined;
  version: string;
  envelope: Resource<JobEnvelope>;
}

function Known({ api, job, path, row, version, envelope }: KnownProps) {
  const status = envelope.value?.job_status;
  return (
    <>
      <PageHead
        above={
          <>
            <Link to={["jobs"]}>Jobs</Link> · <ApiLink name={api} />
          </>
        }
        title={<span class="mono">{job}</span>}
        actions={status && <JobActions path={path} status={status} again={envelope.again} />}
      >
        {status && (
          <>
            <Status of={status.paused_time && !status.end_time ? "paused" : status.status} />
            {status.reason && (
              <span>
                <Words text={status.reason.message} />
              </span>
            )}
          </>
        )}
      </PageHead>
      <Loaded resource={envelope} lines={8}>
        {(value) => <Parts envelope={value} path={path} row={row} version={version} again={envelope.again} />}
      </Loaded>
    </>
  );
}

interface PartsProps {
  envelope: JobEnvelope;
  path: string;
  row: OverviewJob | undefined;
  version: string;
  again: () => void;
}

function Parts({ envelope, path, row, version, again }: PartsProps) {
  const { job_status } = envelope;
  const tabs: Tab[] = [
    { id: "now", label: "Now" },
    { id: "failures", label: "Failures" },
    { id: "logs", label: "Logs" },
    ...(job_status.output ? [{ id: "output", label: "Output" }] : []),
    { id: "submission", label: "Submission" },
  ];
  const tab = openTab(tabs);
  return (
    <>
      <Tabs tabs={tabs} label="parts of this job" />
      {tab === "now" && (
        <>
          <Findings
            isOver={job_status.end_time !== undefined}
            path={`${path}/explain`}
            version={`${job_status.status} ${job_status.paused_time} ${job_status.round} ${job_status.end_time}`}
          />
          <JobSummary status={job_status} row={row} />
          <Workers
            path={path}
            version={`${job_status.status} ${JSON.stringify(job_status.worker_counts)}`}
            isOver={job_status.end_time !== undefined}
          />
          <Rounds path={path} version={versionOf(job_status)} />
          <JobPlots job={job_status.job_id} />
        </>
      )}
      {tab === "failures" && (
        <Failures
          path={path}
          status={job_status}
          version={`${version} ${versionOf(job_status)}`}
          again={again}
        />
      )}
      {tab === "logs" && (
        <LogView path={`${path}/logs`} label="log of the job" isLive={job_status.end_time === undefined} />
      )}
      {tab === "output" && job_status.output && <Results path={path} output={job_status.output} />}
      {tab === "submission" && <Submission envelope={envelope} />}
    </>
  );
}

/** Changes with the counts of the job, and with a round that is over before the stream has told of it. */
function versionOf({ status, end_time, batch_metrics }: JobEnvelope["job_status"]): string {
  return JSON.stringify([status, end_time, batch_metrics]);
}
