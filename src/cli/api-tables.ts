/** Shows deployed APIs as text, as Cortex did. */
import type { ApplicationState } from "../contracts/config/applications.ts";
import type { ApiView, DescribedApi } from "../contracts/http/answers.ts";
import { statusCounts } from "./project/application-tables.ts";
import { dateTime, since, table } from "./terminal/table.ts";

/** An API as the server shows it. Only a request for one API includes its history. */
export interface ApiState extends Omit<ApiView, "spec"> {
  spec: { monitoring?: { model_type?: string }; apis?: { name: string; weight: number; shadow: boolean }[] };
  history?: DescribedApi["history"];
}

const BATCH_HEAD = ["batch api", "running jobs", "latest job id", "last update"];
const SPLITTER_HEAD = ["traffic splitter", "apis", "last update"];
const APPLICATION_HEAD = ["application", "environment", "resources", "last update"];
const REQUEST_HEAD = ["avg request", "2XX", "4XX*", "5XX*"];
const REPLICA_HEAD = ["status", "up-to-date", "stale*", "requested", "last update", ...REQUEST_HEAD];

/** Everything that is deployed, with a table per kind. The first column is the environment. */
export function apisTables(
  environment: string,
  apis: readonly ApiState[],
  applications: readonly ApplicationState[],
): string {
  if (apis.length === 0 && applications.length === 0) return "no apis are deployed";
  const ofKind = (kind: ApiState["kind"]) => apis.filter((api) => api.kind === kind);
  return [
    kindTable(environment, BATCH_HEAD, ofKind("BatchAPI").map(batchCells)),
    kindTable(environment, ["realtime api", ...REPLICA_HEAD], ofKind("RealtimeAPI").map(realtimeCells)),
    kindTable(environment, SPLITTER_HEAD, ofKind("TrafficSplitter").map(splitterCells)),
    kindTable(environment, APPLICATION_HEAD, applications.map(applicationCells)),
  ]
    .filter((text) => text !== "")
    .join("\n\n");
}

/** "" without rows. */
function kindTable(environment: string, head: readonly string[], rows: readonly string[][]): string {
  if (rows.length === 0) return "";
  return table(
    ["env", ...head],
    rows.map((cells) => [environment, ...cells]),
  );
}

function batchCells(api: ApiState): string[] {
  return [api.name, String(api.running_jobs ?? 0), latestJob(api), since(api.last_updated)];
}

function realtimeCells(api: ApiState): string[] {
  return [api.name, ...replicaCells(api)];
}

function splitterCells(api: ApiState): string[] {
  return [api.name, weights(api), since(api.last_updated)];
}

function applicationCells(application: ApplicationState): string[] {
  const { name, environment, deployed_time } = application;
  return [name, environment, statusCounts(application), since(deployed_time)];
}

function latestJob({ latest_job }: ApiState): string {
  return latest_job == null ? "-" : `${latest_job.job_id} (submitted ${since(latest_job.created_time)} ago)`;
}

function weights({ spec }: ApiState): string {
  return (spec.apis ?? [])
    .map(({ name, weight, shadow }) => `${name}:${weight}${shadow ? " (shadow)" : ""}`)
    .join(" ");
}

/** The APIs that a splitter sends to, each with its replicas. `all` are the deployed APIs. */
export function splitterTable({ spec }: ApiState, all: readonly ApiState[]): string {
  const rows = (spec.apis ?? []).map(({ name, weight, shadow }) => {
    const api = all.find((other) => other.name === name);
    const share = shadow ? `${weight} (shadow)` : String(weight);
    if (api === undefined) return [name, share, "-", "-", "-", "-", "-", "0", "0"];
    const updated = since(api.last_updated);
    return [name, share, api.status, String(api.requested_replicas), updated, ...requestCells(api)];
  });
  return table(["apis", "weights", "status", "requested", "last update", ...REQUEST_HEAD], rows);
}

function replicaCells(api: ApiState): string[] {
  const stale = api.replicas.filter(({ is_up_to_date, state }) => !is_up_to_date && state === "ready").length;
  return [
    api.status,
    String(api.up_to_date_replicas),
    String(stale),
    String(api.requested_replicas),
    since(api.last_updated),
    ...requestCells(api),
  ];
}

/** The average as `24 ms`, or `1.5 s` from one second on; `-` if there was no request. */
function requestCells({ metrics }: ApiState): string[] {
  const ms = metrics?.avg_request_ms ?? null;
  const average = ms === null ? "-" : ms < 1000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`;
  const { requests } = metrics ?? { requests: { "2xx": 0, "4xx": 0, "5xx": 0 } };
  return [
    average,
    requests["2xx"] === 0 ? "-" : String(requests["2xx"]),
    String(requests["4xx"]),
    String(requests["5xx"]),
  ];
}

/** Shows six digits, as Cortex did. */
function digits(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** The predictions of a monitored API; "" for other APIs. */
export function predictionsTable({ metrics, spec }: ApiState): string {
  const { classes, values } = metrics ?? {};
  if (classes !== undefined)
    return table(
      ["class", "count"],
      classes.map(({ name, count }) => [name, String(count)]),
    );
  if (values !== undefined)
    return table(
      ["min", "max", "avg", "count"],
      [[digits(values.min), digits(values.max), digits(values.avg), String(values.count)]],
    );
  return spec.monitoring?.model_type === undefined ? "" : "no predictions were counted yet";
}

/** The table of one real-time API. */
export function apiRow(api: ApiState): string {
  return table(REPLICA_HEAD, [replicaCells(api)]);
}

/** The versions that were deployed under this name; the current one is marked. */
export function historyTable({ api_id: current, history }: ApiState): string {
  return table(
    ["api id", "last deployed", "age"],
    (history ?? []).map(({ api_id, deployed_time }) => [
      api_id === current ? `${api_id} *` : api_id,
      dateTime(deployed_time),
      since(deployed_time),
    ]),
  );
}
