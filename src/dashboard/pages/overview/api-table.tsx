/**
 * APIs with their rate, errors, latency and the last half hour. Those in trouble come first, then the busy ones. A narrow
 * screen shows the first columns, so what tells a trouble stands there.
 */

import { Spark } from "../../charts/spark.tsx";
import { apiStatus } from "../../format/api-status.ts";
import { rate } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { ApiLink } from "../../parts/link.tsx";
import { Empty } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status, toneOf } from "../../parts/status.tsx";
import { useHold, useSteady } from "../../parts/steady.ts";
import type { OverviewApi } from "../../shapes.ts";

const KINDS = { RealtimeAPI: "real-time", BatchAPI: "batch", TrafficSplitter: "splitter" } as const;
const URGENCY = { bad: 0, warn: 1, busy: 2, good: 3, idle: 3 } as const;

/** Pure: the order of the table. */
export function byUrgency(one: OverviewApi, other: OverviewApi): number {
  return (
    URGENCY[toneOf(apiStatus(one))] - URGENCY[toneOf(apiStatus(other))] ||
    other.requests_per_s - one.requests_per_s ||
    (other.running_jobs ?? 0) - (one.running_jobs ?? 0) ||
    (one.name < other.name ? -1 : 1)
  );
}

interface ApiTableProps {
  /** In the order of the rows, which keep their places while the mouse is over the table. */
  apis: readonly OverviewApi[];
  /** The table ends after so many. */
  most: number;
  /** The filters and the order that were asked for. */
  view?: string;
}

export function ApiTable({ apis, most, view }: ApiTableProps) {
  const { isHeld, handlers } = useHold();
  const rows = useSteady(apis, ({ name }) => name, isHeld, view).slice(0, most);
  if (apis.length === 0) return <Empty title="No API matches" />;
  return (
    <Scroll label="APIs">
      <table class="wide" {...handlers}>
        <thead>
          <tr>
            <th>API</th>
            <th>Status</th>
            <th class="number">Errors/s</th>
            <th class="number">p99</th>
            <th class="number">Requests/s</th>
            <th class="number">p50</th>
            <th class="number">Replicas</th>
            <th>Requests, 30 min</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((api) => (
            <Row key={api.name} api={api} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ api }: { api: OverviewApi }) {
  const isRealtime = api.kind === "RealtimeAPI";
  return (
    <tr>
      <td>
        <ApiLink name={api.name} /> <span class="quiet small">{KINDS[api.kind]}</span>
      </td>
      <td>
        <Status of={apiStatus(api)} />
        {api.message && <p class="small quiet clip">{api.message}</p>}
      </td>
      <td class={`number ${api.trouble === "failing" ? "is-bad" : ""}`}>
        {api.kind === "BatchAPI" ? "" : rate(api.errors_per_s)}
      </td>
      <td class="number">{api.latency_p99_s === null ? "" : duration(api.latency_p99_s)}</td>
      <td class="number">{api.kind === "BatchAPI" ? "" : rate(api.requests_per_s)}</td>
      <td class="number">{api.latency_p50_s === null ? "" : duration(api.latency_p50_s)}</td>
      <td class="number">
        {isRealtime
          ? `${api.ready_replicas}/${api.requested_replicas}`
          : api.running_jobs === null
            ? ""
            : `${api.running_jobs} running`}
      </td>
      <td>
        {api.kind !== "BatchAPI" && (
          <Spark minutes={api.recent} label={`requests of ${api.name} in 30 minutes`} />
        )}
      </td>
    </tr>
  );
}
