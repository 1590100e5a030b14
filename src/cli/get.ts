/** `quern get`: shows an API, a job, an application's resources, or everything that is deployed. */
import { prettyJson } from "../base/json/exact.ts";
import { memberText } from "../base/json/spans.ts";
import type { ApplicationState } from "../contracts/config/applications.ts";
import {
  type ApiState,
  apiRow,
  apisTables,
  historyTable,
  predictionsTable,
  splitterTable,
} from "./api-tables.ts";
import { getJob, listJobs } from "./jobs/show-jobs.ts";
import { type About, aboutHere } from "./project/about-here.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { dateTime } from "./terminal/table.ts";

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
    context.err("it is not deployed; everything that is deployed:\n");
    return watched(context, (watching) => get(watching, undefined, undefined));
  }
}

async function get(context: CliContext, api: string | undefined, job: string | undefined): Promise<number> {
  if (api === undefined) return getAll(context);
  return job === undefined ? getApi(context, api) : getJob(context, api, job);
}

async function getAll({ client, environment, output, out }: CliContext): Promise<number> {
  const { value, text } = await client.json<{ apis: ApiState[] }>("/-/apis");
  if (output === "json") {
    await out(`${prettyJson(memberText(text, "apis"))}\n`);
    return EXIT.success;
  }
  const { applications } = (await client.json<{ applications: ApplicationState[] }>("/-/applications")).value;
  await out(`${apisTables(environment, value.apis, applications)}\n`);
  return EXIT.success;
}

async function getApi(context: CliContext, name: string): Promise<number> {
  const { value: api, text } = await context.client.json<ApiState>(`/-/apis/${encodeURIComponent(name)}`);
  if (context.output === "json") {
    await context.out(`${prettyJson(text)}\n`);
    return EXIT.success;
  }
  if (api.kind === "BatchAPI") await listJobs(context, name, {});
  else if (api.kind === "TrafficSplitter")
    await context.out(`${splitterTable(api, await allApis(context))}\n`);
  else await context.out(`${apiRow(api)}\n`);
  const predictions = predictionsTable(api);
  if (predictions !== "") await context.out(`\n${predictions}\n`);
  if (api.paused_time !== undefined)
    await context.out(
      `\npaused since ${dateTime(api.paused_time)}: no new batch begins; \`quern unpause ${name}\` continues its jobs\n`,
    );
  if (api.message !== undefined) await context.out(`\n${api.message}\n`);
  await context.out(`\nendpoint: ${api.endpoint}\n`);
  if (api.kind !== "BatchAPI") await context.out(`\n${historyTable(api)}\n`);
  return EXIT.success;
}

async function allApis({ client }: CliContext): Promise<ApiState[]> {
  return (await client.json<{ apis: ApiState[] }>("/-/apis")).value.apis;
}
