/** The commands `quern check`, `quern deploy` and `quern patch`. */
import { existsSync } from "node:fs";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { configurationOf, configurationText, packProject } from "./pack-project.ts";

export interface Deployed {
  api: string;
  kind: string;
  message: string;
  endpoint: string;
}

export interface DeployOptions {
  /** The environment of a declarative application. */
  environment?: string;
  /** Cancel a deployment in progress. */
  force?: boolean;
}

export async function deploy(
  context: CliContext,
  file: string,
  apis: string[],
  options: { wait?: boolean } & DeployOptions,
): Promise<number> {
  const { value, text } = await sendProject(context, file, apis, false, options);
  return report(context, value, text, options.wait === true);
}

/** `quern patch`: changes the configuration of deployed APIs, and keeps their files. */
export async function patch(
  context: CliContext,
  file: string,
  apis: string[],
  options: { wait?: boolean; force?: boolean },
): Promise<number> {
  const configFile = configurationOf(file);
  const body = configurationText(configFile);
  if (body === undefined)
    throw new CliError(`${configFile} does not exist; name a configuration file`, EXIT.usage);
  if ((await import("./about-here.ts")).isApplication(body)) {
    const cure = "use `quern deploy`, which recomputes only what a change affects";
    throw new CliError(
      `${configFile} belongs to an application, which is deployed with its files; ${cure}`,
      EXIT.usage,
    );
  }
  const { value, text } = await context.client.json<Deployed[]>("/-/patch", {
    method: "POST",
    query: { config: configFile, api: apis, force: options.force === true ? "true" : undefined },
    headers: { "content-type": "application/yaml" },
    body: Buffer.from(body),
  });
  return report(context, value, text, options.wait === true);
}

async function report(context: CliContext, deployed: Deployed[], text: string, isWaiting: boolean) {
  if (context.output === "json") await context.out(`${text}\n`);
  else for (const { message } of deployed) await context.out(`${message}\n`);
  if (context.output === "table") context.err(nextSteps(deployed));
  if (!isWaiting) return EXIT.success;
  for (const { api, kind } of deployed) {
    if (kind === "RealtimeAPI") await waitUntilLive(context, api);
    if (kind === "Application") await (await import("./applications.ts")).waitUntilReady(context, api);
  }
  return EXIT.success;
}

/** Suggests the next commands, as Cortex did. */
function nextSteps(deployed: readonly Deployed[]): string {
  const [first] = deployed;
  if (first === undefined) return "";
  if (first.kind === "Application") return applicationSteps(first.api);
  const realtime = deployed.find(({ kind }) => kind === "RealtimeAPI");
  const lines = [
    "quern get  (show api statuses)",
    `quern get ${first.api}  (show api info)`,
    ...(realtime === undefined ? [] : [`quern logs ${realtime.api}  (print api logs)`]),
  ];
  return `\n${lines.join("\n")}\n`;
}

function applicationSteps(app: string): string {
  const lines = [
    `quern status -a ${app} -w  (watch the progress)`,
    `quern get -a ${app}  (show resources)`,
    `quern logs -a ${app} NAME  (print the log of a resource)`,
  ];
  return `\n${lines.join("\n")}\n`;
}

export async function check(context: CliContext, file: string, options: DeployOptions = {}): Promise<number> {
  const { value, text, configFile } = await sendProject(context, file, [], true, options);
  if (context.output === "json") await context.out(`${text}\n`);
  else
    await context.out(
      `${existsSync(file) ? file : configFile} is valid: ${value.map(({ api, kind }) => `${api} (${kind})`).join(", ")}\n`,
    );
  return EXIT.success;
}

export async function sendProject(
  { client, err }: CliContext,
  file: string,
  apis: string[],
  dryRun: boolean,
  { environment, force }: DeployOptions = {},
) {
  const { archive, configFile, notices } = await packProject(file);
  for (const notice of notices) err(notice);
  const deployed = await client.json<Deployed[]>("/-/deploy", {
    method: "POST",
    query: {
      ...{ config: configFile, api: apis, dry_run: dryRun ? "true" : undefined },
      ...{ environment, force: force === true ? "true" : undefined },
    },
    headers: { "content-type": "application/gzip" },
    body: archive,
  });
  return { ...deployed, configFile };
}

/** Waits until the replicas of the newest version serve. Throws if they cannot. */
export async function waitUntilLive({ client, err }: CliContext, api: string): Promise<void> {
  for (let shown = ""; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const { value } = await client.json<{
      status: string;
      message?: string;
      up_to_date_replicas: number;
      requested_replicas: number;
    }>(`/-/apis/${encodeURIComponent(api)}`);
    const why = value.status === "compute unavailable" ? `; ${value.message}` : "";
    const now = `${api} is ${value.status} (${value.up_to_date_replicas}/${value.requested_replicas} replicas)${why}`;
    if (now !== shown) err(`${now}\n`);
    shown = now;
    if (value.status === "live") return;
    if (value.status.startsWith("error"))
      throw new CliError(
        `${api} could not start: ${value.message}; \`quern logs ${api}\` has the traceback`,
        EXIT.failed,
      );
  }
}
