/** `quern get`, `predict`, `logs`, `delete`, `version`. */
import { readFileSync } from "node:fs";
import { type CliContext, CliError, EXIT } from "./context.ts";
import { getJob, listJobs } from "./jobs.ts";
import { since, table } from "./table.ts";

interface ApiState {
  name: string;
  kind: string;
  api_id: string;
  status: string;
  message?: string;
  up_to_date_replicas: number;
  requested_replicas: number;
  last_updated: string;
  endpoint: string;
}

export async function get(
  context: CliContext,
  api: string | undefined,
  job: string | undefined,
): Promise<number> {
  if (api !== undefined && job !== undefined) return getJob(context, api, job);
  if (api !== undefined) return getApi(context, api);
  const { value } = await context.client.json<{ apis: ApiState[] }>("/-/apis");
  if (context.output === "json") context.out(`${JSON.stringify(value.apis, null, 2)}\n`);
  else context.out(`${apisTable(value.apis)}\n`);
  return EXIT.success;
}

function apisTable(apis: readonly ApiState[]): string {
  if (apis.length === 0) return "no apis are deployed";
  const batch = apis.filter((api) => api.kind === "BatchAPI");
  const realtime = apis.filter((api) => api.kind === "RealtimeAPI");
  const tables: string[] = [];
  if (batch.length > 0)
    tables.push(
      table(
        ["batch api", "last update"],
        batch.map((api) => [api.name, since(api.last_updated)]),
      ),
    );
  if (realtime.length > 0)
    tables.push(
      table(
        ["realtime api", "status", "up-to-date", "requested", "last update"],
        realtime.map((api) => [api.name, ...replicaCells(api)]),
      ),
    );
  return tables.join("\n\n");
}

function replicaCells(api: ApiState): string[] {
  return [
    api.status,
    String(api.up_to_date_replicas),
    String(api.requested_replicas),
    since(api.last_updated),
  ];
}

async function getApi(context: CliContext, name: string): Promise<number> {
  const { value: api, text } = await context.client.json<ApiState>(`/-/apis/${name}`);
  if (context.output === "json") {
    context.out(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    return EXIT.success;
  }
  if (api.kind === "BatchAPI") await listJobs(context, name, {});
  else context.out(`${table(["status", "up-to-date", "requested", "last update"], [replicaCells(api)])}\n`);
  if (api.message !== undefined) context.out(`\n${api.message}\n`);
  context.out(`\nendpoint: ${api.endpoint}\n`);
  return EXIT.success;
}

export async function predict(context: CliContext, api: string, file: string): Promise<number> {
  const body = readFileSync(file === "-" ? 0 : file);
  const { text } = await context.client.json(`/${api}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  context.out(`${text}\n`);
  return EXIT.success;
}

export async function logs(
  context: CliContext,
  api: string,
  job: string | undefined,
  options: { follow?: boolean },
): Promise<number> {
  const path = job === undefined ? `/-/apis/${api}/logs` : `/${api}/${job}/logs`;
  const accept = context.output === "json" ? "application/x-ndjson" : "text/plain";
  const response = await context.client.request(path, {
    query: { follow: options.follow === true ? "true" : undefined },
    headers: { accept },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
    context.out(decoder.decode(chunk, { stream: true }));
  return EXIT.success;
}

export async function remove(context: CliContext, api: string, job: string | undefined): Promise<number> {
  const { value } = await context.client.json<{ message: string }>(
    job === undefined ? `/-/apis/${api}` : `/${api}/${job}`,
    { method: "DELETE" },
  );
  context.out(context.output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

export async function showVersion(context: CliContext, own: string): Promise<number> {
  const server = await context.client.json<{ version: string }>("/-/version").then(
    ({ value }) => value.version,
    (error: unknown) => {
      if (error instanceof CliError) return undefined;
      throw error;
    },
  );
  if (context.output === "json") context.out(`${JSON.stringify({ cli: own, server: server ?? null })}\n`);
  else context.out(`cli version: ${own}\nserver version: ${server ?? "(no server answers)"}\n`);
  return EXIT.success;
}
