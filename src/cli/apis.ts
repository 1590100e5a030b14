/** The commands `quern get`, `predict`, `refresh`, `rollback`, `delete` and `version`. */
import { existsSync, readFileSync } from "node:fs";
import { memberText, prettyJson } from "../base/json-text.ts";
import type { ApplicationState } from "../contracts/config/applications.ts";
import type { ApiView, DescribedApi } from "../contracts/http/answers.ts";
import { getJob, listJobs } from "./jobs/show-jobs.ts";
import { type About, aboutHere } from "./project/about-here.ts";
import { statusCounts } from "./project/application-tables.ts";
import { change } from "./server/change.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { confirm } from "./terminal/confirm.ts";
import { dateTime, since, table } from "./terminal/table.ts";

/** An API as the server shows it. Only a request for one API includes its history. */
export interface ApiState extends Omit<ApiView, "spec"> {
  spec: { monitoring?: { model_type?: string }; apis?: { name: string; weight: number; shadow: boolean }[] };
  history?: DescribedApi["history"];
}

/**
 * Without a name, a person gets what this directory's configuration deploys, or everything if it is not deployed. A
 * program gets everything, so that its result does not depend on the directory.
 */
export async function getHere(context: CliContext, names: string[], isAll: boolean): Promise<number> {
  const isEverything =
    names.length === 0 && context.app === undefined && (isAll || context.output === "json");
  const about = isEverything
    ? undefined
    : await aboutHere(context, names, "; `quern get --all` shows everything");
  const show = async (watching: CliContext, { app, names }: About) =>
    app === undefined
      ? get(watching, names[0], names[1])
      : (await import("./project/applications.ts")).getResources(watching, app, names);
  const { watched } = await import("./terminal/watch.ts");
  const isGuess = names.length === 0 && context.app === undefined;
  try {
    return await watched(context, (watching) => show(watching, about ?? { app: undefined, names: [] }));
  } catch (error) {
    if (!isGuess || !(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error;
    context.err("it is not deployed; this is everything that is:\n");
    return watched(context, (watching) => get(watching, undefined, undefined));
  }
}

async function get(context: CliContext, api: string | undefined, job: string | undefined): Promise<number> {
  if (api !== undefined && job !== undefined) return getJob(context, api, job);
  if (api !== undefined) return getApi(context, api);
  const { value, text } = await context.client.json<{ apis: ApiState[] }>("/-/apis");
  if (context.output === "json") await context.out(`${prettyJson(memberText(text, "apis"))}\n`);
  else {
    const { applications } = (
      await context.client.json<{ applications: ApplicationState[] }>("/-/applications")
    ).value;
    await context.out(`${apisTable(context.environment, value.apis, applications)}\n`);
  }
  return EXIT.success;
}

function apisTable(
  environment: string,
  apis: readonly ApiState[],
  applications: readonly ApplicationState[],
): string {
  if (apis.length === 0 && applications.length === 0) return "no apis are deployed";
  const batch = apis.filter((api) => api.kind === "BatchAPI");
  const realtime = apis.filter((api) => api.kind === "RealtimeAPI");
  const tables: string[] = [];
  if (batch.length > 0)
    tables.push(
      table(
        ["env", "batch api", "running jobs", "latest job id", "last update"],
        batch.map((api) => [
          environment,
          api.name,
          String(api.running_jobs ?? 0),
          latestJob(api),
          since(api.last_updated),
        ]),
      ),
    );
  if (realtime.length > 0)
    tables.push(
      table(
        ["env", "realtime api", ...REPLICA_HEAD],
        realtime.map((api) => [environment, api.name, ...replicaCells(api)]),
      ),
    );
  const splitters = apis.filter((api) => api.kind === "TrafficSplitter");
  if (splitters.length > 0)
    tables.push(
      table(
        ["env", "traffic splitter", "apis", "last update"],
        splitters.map((api) => [environment, api.name, weights(api), since(api.last_updated)]),
      ),
    );
  if (applications.length > 0)
    tables.push(
      table(
        ["env", "application", "environment", "resources", "last update"],
        applications.map((application) => [
          ...[environment, application.name, application.environment],
          ...[statusCounts(application), since(application.deployed_time)],
        ]),
      ),
    );
  return tables.join("\n\n");
}

function weights({ spec }: ApiState): string {
  return (spec.apis ?? [])
    .map(({ name, weight, shadow }) => `${name}:${weight}${shadow ? " (shadow)" : ""}`)
    .join(" ");
}

/** The APIs that a splitter sends to, each with its replicas. */
async function splitterTable({ client }: CliContext, { spec }: ApiState): Promise<string> {
  const all = (await client.json<{ apis: ApiState[] }>("/-/apis")).value.apis;
  const rows = (spec.apis ?? []).map(({ name, weight, shadow }) => {
    const api = all.find((other) => other.name === name);
    const share = shadow ? `${weight} (shadow)` : String(weight);
    if (api === undefined) return [name, share, "-", "-", "-", "-", "-", "0", "0"];
    const [status, , , requested, updated] = replicaCells(api);
    return [name, share, status!, requested!, updated!, ...requestCells(api)];
  });
  return table(["apis", "weights", "status", "requested", "last update", ...REQUEST_HEAD], rows);
}

function latestJob({ latest_job }: ApiState): string {
  return latest_job == null ? "-" : `${latest_job.job_id} (submitted ${since(latest_job.created_time)} ago)`;
}

const REQUEST_HEAD = ["avg request", "2XX", "4XX*", "5XX*"];
const REPLICA_HEAD = ["status", "up-to-date", "stale*", "requested", "last update", ...REQUEST_HEAD];

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

async function getApi(context: CliContext, name: string): Promise<number> {
  const { value: api, text } = await context.client.json<ApiState>(`/-/apis/${encodeURIComponent(name)}`);
  if (context.output === "json") {
    await context.out(`${prettyJson(text)}\n`);
    return EXIT.success;
  }
  if (api.kind === "BatchAPI") await listJobs(context, name, {});
  else if (api.kind === "TrafficSplitter") await context.out(`${await splitterTable(context, api)}\n`);
  else await context.out(`${apiRow(api)}\n`);
  const predictions = predictionsTable(api);
  if (predictions !== "") await context.out(`\n${predictions}\n`);
  if (api.message !== undefined) await context.out(`\n${api.message}\n`);
  await context.out(`\nendpoint: ${api.endpoint}\n`);
  if (api.kind !== "BatchAPI") await context.out(`\n${historyTable(api)}\n`);
  return EXIT.success;
}

/** The file of `predict [API] FILE`: the last argument. Throws if there is no such file. */
export function payloadFile(api: string | undefined, file: string | undefined): string {
  const payload = file ?? api;
  if (payload === "-" || (payload !== undefined && existsSync(payload))) return payload;
  const what = payload === undefined ? "name a JSON file" : `there is no file ${payload}`;
  throw new CliError(`${what}; give an API and a JSON file (- is standard input)`, EXIT.usage);
}

export async function predict(context: CliContext, api: string, file: string): Promise<number> {
  const body = readFileSync(file === "-" ? 0 : file);
  // Predictors may also respond with text and streams. A carriage return would be printed escaped.
  const text = await context.client.text(await context.client.apiPath(api), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  await context.out(`${text.replaceAll(/\r\n?/g, "\n")}\n`);
  return EXIT.success;
}

export async function remove(context: CliContext, api: string, job: string | undefined): Promise<number> {
  if (job === undefined) await confirm(context, `delete ${api}? Its jobs in progress are stopped.`);
  const path =
    job === undefined ? `/-/apis/${encodeURIComponent(api)}` : await context.client.jobPath(api, job);
  return change(context, path, { method: "DELETE" });
}

export function refresh(context: CliContext, api: string, { force }: { force?: boolean }): Promise<number> {
  const query = { force: force === true ? "true" : undefined };
  return change(context, `/-/apis/${encodeURIComponent(api)}/refresh`, { query });
}

export function rollback(context: CliContext, api: string, id: string | undefined): Promise<number> {
  return change(context, `/-/apis/${encodeURIComponent(api)}/rollback`, { query: { api_id: id } });
}

export async function showVersion(context: CliContext, own: string): Promise<number> {
  const server = await context.client.json<{ version: string }>("/-/version").then(
    ({ value }) => value.version,
    (error: unknown) => {
      if (error instanceof CliError) return undefined;
      throw error;
    },
  );
  if (context.output === "json")
    await context.out(`${JSON.stringify({ cli: own, server: server ?? null })}\n`);
  else await context.out(`cli version: ${own}\nserver version: ${server ?? "(no server answers)"}\n`);
  return EXIT.success;
}
