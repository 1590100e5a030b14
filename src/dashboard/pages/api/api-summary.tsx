/** The figures of an API now, and where it is. */
import { counted, rate, whole } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { Copy } from "../../parts/command.tsx";
import { Facts } from "../../parts/facts.tsx";
import { JobLink } from "../../parts/link.tsx";
import { Time } from "../../parts/time.tsx";
import type { DescribedApi, OverviewApi } from "../../shapes.ts";

export function ApiSummary({ api, row }: { api: DescribedApi; row: OverviewApi | undefined }) {
  const { requests } = api.metrics ?? {};
  return (
    <Facts
      rows={[
        [
          "Endpoint",
          <span key="endpoint">
            <code>{api.endpoint}</code> <Copy text={api.endpoint} />
          </span>,
        ],
        ["Version", <code key="version">{api.api_id}</code>],
        ["Deployed", <Time key="time" at={api.last_updated} />],
        api.kind === "RealtimeAPI" && [
          "Replicas",
          `${api.up_to_date_replicas} up to date of ${api.requested_replicas}${api.requested_because ? `: ${api.requested_because}` : ""}`,
        ],
        row && api.kind !== "BatchAPI" && ["Now", now(row)],
        requests && [
          "Last 14 days",
          `${whole(requests["2xx"])} succeeded, ${whole(requests["4xx"])} refused (4xx), ${whole(requests["5xx"])} failed (5xx)`,
        ],
        api.running_jobs !== undefined && ["Running jobs", whole(api.running_jobs)],
        api.latest_job
          ? ["Latest job", <JobLink key="job" api={api.name} job={api.latest_job.job_id} isWhole />]
          : undefined,
      ]}
    />
  );
}

function now({ requests_per_s, latency_p50_s, latency_p99_s, in_flight, queue_depth }: OverviewApi): string {
  const latency =
    latency_p50_s === null || latency_p99_s === null
      ? ""
      : `, p50 ${duration(latency_p50_s)}, p99 ${duration(latency_p99_s)}`;
  return `${rate(requests_per_s)} requests/s${latency}, ${counted(in_flight, "request")} in flight, ${whole(queue_depth)} of them waiting`;
}
