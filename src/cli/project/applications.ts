/** The verbs with `-a APP` for declarative applications: `get`, `status`, `logs`, `predict`, `refresh` and `delete`. */
import { readFileSync } from "node:fs";
import type { ApplicationState, ResourceState } from "../../contracts/config/applications.ts";
import { change } from "../server/change.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { confirm } from "../terminal/confirm.ts";
import { printStream } from "../terminal/print-stream.ts";
import { dateTime } from "../terminal/table.ts";
import { kindOf, resourceDetails, resourceTables, statusTable, TITLES } from "./application-tables.ts";
import { hintAtMore } from "./logs.ts";

const POLL_MS = 200;

/** `[TYPE] [NAME]`: shows all resources, those of a type, or one. */
export async function getResources(
  context: CliContext,
  app: string,
  given: readonly string[],
): Promise<number> {
  const state = await read(context, app, true);
  const wanted = select(state, given);
  if (context.output === "json") {
    const value = wanted.length === 1 && given.length > 0 ? wanted[0] : { ...state, resources: wanted };
    await context.out(`${JSON.stringify(value, null, 2)}\n`);
  } else if (given.length > 0 && wanted.length === 1) await context.out(`${resourceDetails(wanted[0]!)}\n`);
  else await context.out(`${resourceTables({ ...state, resources: wanted })}\n`);
  return EXIT.success;
}

/** Whether an application is deployed and has a resource or a type of this name. */
export async function hasResource(context: CliContext, app: string, name: string): Promise<boolean> {
  try {
    const { resources } = await read(context, app);
    return kindOf(name) !== undefined || resources.some((resource) => resource.name === name);
  } catch (error) {
    if (error instanceof CliError && error.exitCode === EXIT.notFound) return false;
    throw error;
  }
}

export async function showStatus(
  context: CliContext,
  app: string,
  given: readonly string[],
): Promise<number> {
  if (given.length > 0) return getResources(context, app, given);
  const state = await read(context, app);
  await context.out(
    context.output === "json"
      ? `${JSON.stringify(state.resources.map(({ kind, name, status }) => ({ kind, name, status })))}\n`
      : `${statusTable(state)}\n`,
  );
  return EXIT.success;
}

export async function resourceLogs(
  context: CliContext,
  app: string,
  given: readonly string[],
  options: { follow?: boolean },
): Promise<number> {
  if (given.length === 0)
    throw new CliError(`name a resource of ${app}: \`quern logs -a ${app} [TYPE] NAME\``, EXIT.usage);
  const state = await read(context, app);
  const [resource] = select(state, given);
  const path = `${addressOf(app)}/resources/${encodeURIComponent(resource!.name)}/logs`;
  await printStream(context, path, {
    query: { kind: resource!.kind, follow: options.follow === true ? "true" : undefined },
    headers: { accept: context.output === "json" ? "application/x-ndjson" : "text/plain" },
  });
  const isMore = options.follow !== true && (state.is_working || resource!.kind === "api");
  const command = `quern logs -f -a ${app} ${resource!.kind} ${resource!.name}`;
  if (isMore) await hintAtMore(context, () => `the log may continue: \`${command}\` follows it`);
  return EXIT.success;
}

interface Prediction {
  predicted_class?: number;
  predicted_class_reversed?: unknown;
  predicted_value?: number;
  predicted_value_reversed?: number | null;
}

export async function predictSamples(
  context: CliContext,
  app: string,
  given: string | undefined,
  file: string,
): Promise<number> {
  const apis = select(await read(context, app), given === undefined ? ["api"] : ["api", given]);
  const [resource] = apis;
  if (resource === undefined || apis.length > 1)
    throw new CliError(
      `name an API of ${app}; it has ${apis.map(({ name }) => name).join(", ") || "none"}`,
      EXIT.usage,
    );
  const { text } = await context.client.json(`/${app}/${resource.name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: readFileSync(file === "-" ? 0 : file),
  });
  await context.out(context.output === "json" ? `${text}\n` : predictionsText(resource, text));
  return EXIT.success;
}

function predictionsText({ name, api }: ResourceState, text: string): string {
  const { classification_predictions: classes, regression_predictions: values } = JSON.parse(text) as {
    classification_predictions?: Prediction[];
    regression_predictions?: Prediction[];
  };
  const [what, shown] =
    classes === undefined
      ? ["value", (values ?? []).map(valueText)]
      : ["class", classes.map((each) => String(each.predicted_class_reversed ?? each.predicted_class))];
  const title = shown.length === 1 ? what : `${what}${what === "class" ? "es" : "s"}`;
  return `${name} was last updated on ${dateTime(api?.last_updated)}\n\nPredicted ${title}:\n${shown.join("\n")}\n`;
}

function valueText({ predicted_value, predicted_value_reversed }: Prediction): string {
  return (predicted_value_reversed ?? predicted_value ?? Number.NaN).toFixed(2);
}

export async function refreshApplication(
  context: CliContext,
  app: string,
  options: { force?: boolean },
): Promise<number> {
  const query = { force: options.force === true ? "true" : undefined };
  return change(context, `${addressOf(app)}/refresh`, { query });
}

export async function deleteApplication(context: CliContext, app: string): Promise<number> {
  await confirm(context, `delete the application ${app}, with its models and data?`);
  return change(context, addressOf(app), { method: "DELETE" });
}

/** Waits until all resources of an application are ready. Throws if one cannot become ready. */
export async function waitUntilReady(context: CliContext, app: string): Promise<ApplicationState> {
  for (let shown = ""; ; await new Promise((resolve) => setTimeout(resolve, POLL_MS))) {
    const state = await read(context, app);
    const now = statusTable(state).replace(/ {2,}/g, " ").split("\n").join("; ");
    if (now !== shown) context.err(`${now}\n`);
    shown = now;
    const failed = state.resources.find(({ status }) => status === "error");
    if (failed !== undefined && !state.is_working) throw failure(app, failed);
    if (state.resources.every(({ status }) => status === "ready")) return state;
    const stopped = state.resources.find(({ status }) => status === "terminated");
    if (stopped !== undefined && !state.is_working)
      throw new CliError(`${app}: the deployment was stopped`, EXIT.failed);
  }
}

function failure(app: string, { kind, name, reason, api }: ResourceState): CliError {
  const why = reason ?? api?.message;
  return new CliError(
    `${kind} ${name}${why === undefined ? "" : `: ${why}`}\nAn error occurred, see \`quern logs -a ${app} ${kind} ${name}\` for more details.`,
    EXIT.failed,
  );
}

async function read({ client }: CliContext, app: string, withValues = false): Promise<ApplicationState> {
  const query = { values: withValues ? "true" : undefined };
  return (await client.json<ApplicationState>(addressOf(app), { query })).value;
}

/** Selects the resources of `[TYPE] [NAME]`. A name alone may belong to any type. */
function select({ name: app, resources }: ApplicationState, given: readonly string[]): ResourceState[] {
  if (given.length === 0) return resources;
  const [first, second] = given;
  const kind =
    second === undefined && resources.some(({ name }) => name === first) ? undefined : kindOf(first!);
  const name = kind === undefined ? first : second;
  if (kind === undefined && second !== undefined)
    throw new CliError(
      `"${first}" is not a type of resource; types are ${Object.keys(TITLES).join(", ")}`,
      EXIT.usage,
    );
  const found = resources.filter(
    (resource) =>
      (kind === undefined || resource.kind === kind) && (name === undefined || resource.name === name),
  );
  if (name !== undefined && found.length === 0)
    throw new CliError(
      `${app} has no ${kind ?? "resource"} ${name}; \`quern get -a ${app}\` shows all`,
      EXIT.notFound,
    );
  if (name !== undefined && found.length > 1)
    throw new CliError(
      `${app} has several resources ${name}: name the type too, ${found.map((each) => each.kind).join(" or ")}`,
      EXIT.usage,
    );
  return found;
}

function addressOf(app: string): string {
  return `/-/applications/${encodeURIComponent(app)}`;
}
