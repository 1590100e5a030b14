/** `/-/deploy`, `/-/patch` and `/-/apis`: deploys APIs, and shows deployed ones. */
import { Readable } from "node:stream";
import { type Context, Hono } from "hono";
import type { Keys } from "../access/keys.ts";
import type { ConfigForm } from "../apis/api-reader.ts";
import type { ApiState } from "../apis/api-state.ts";
import type { Apis } from "../apis/apis.ts";
import type { ConfigRequest } from "../apis/deploy/deploy.ts";
import type { DeployedApi } from "../apis/deploy/plan-deployment.ts";
import { stringifyWithRaw } from "../base/json/exact.ts";
import type { Jobs } from "../batch/jobs.ts";
import { ServiceError } from "../contracts/errors.ts";
import { CONFIG_FILE_BYTES_MAX } from "../contracts/limits/configuration.ts";
import { logsResponse } from "./answers/logs.ts";
import { jsonChunks } from "./answers/long-json.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import type { ShownConfig } from "./answers/shown-config.ts";
import { jsonText } from "./answers/stream-text.ts";
import { tellAudit } from "./requests/audited.ts";
import { assertStillOpen, doneBy, senderOf } from "./requests/authorization.ts";
import { bodyOwner, readBody } from "./requests/body.ts";
import { askForBody } from "./requests/connection.ts";
import { baseUrl } from "./requests/forwarded.ts";
import { flag } from "./requests/parameters.ts";
import type { ReadsInTurn } from "./requests/reads-in-turn.ts";

/** Few, as each may have a long configuration. Alone, each would wait for commits of the jobs that run. */
const APIS_READ_TOGETHER = 8;

export interface ApiRoutesDeps {
  apis: Apis;
  jobs: Jobs;
  keys: Keys;
  streams: OpenStreams;
  lists: OpenStreams;
  reads: ReadsInTurn;
  shown: ShownConfig;
  apiLogDirectory: (name: string) => string;
}

function deployRoutes(apis: Apis, keys: Keys): Hono {
  const app = new Hono();
  const answer = (c: Context, deployed: DeployedApi[]) => {
    const names = deployed.map(({ api, api_id }) => `${api} ${api_id}`).join(", ");
    tellAudit(c, flag(c, "dry_run") ? `checked only: ${names}` : names);
    return c.json(deployed.map((api) => ({ ...api, endpoint: `${baseUrl(c)}${api.endpoint}` })));
  };

  app.post("/-/deploy", async (c) => {
    askForBody(c);
    const archive = Readable.fromWeb(c.req.raw.body as never);
    const environment = c.req.query("environment") ?? "dev";
    return answer(
      c,
      await apis.deploy({
        ...configRequest(c, keys),
        archive,
        onReceived: () => assertStillOpen(c),
        environment,
      }),
    );
  });

  app.post("/-/patch", async (c) => {
    const cure = "put large values into files of the project";
    const body = await readBody(c, bodyOwner(c, keys), { limit: CONFIG_FILE_BYTES_MAX + 1, cure });
    return answer(c, await apis.patch(configRequest(c, keys), body.toString()));
  });

  return app;
}

function configRequest(c: Context, keys: Keys): ConfigRequest {
  return {
    sender: senderOf(c, keys),
    by: doneBy(c, keys),
    configFile: c.req.query("config") ?? "quern.yaml",
    only: c.req.queries("api") ?? [],
    dryRun: flag(c, "dry_run"),
    force: flag(c, "force"),
  };
}

function pauseRoutes(apis: Apis, jobs: Jobs): Hono {
  const app = new Hono();
  app.post("/-/apis/:name/pause", async (c) => {
    const name = await batchApiName(c, apis);
    const count = await jobs.pauses.pauseApi(name);
    return c.json({ message: `paused ${name}: no new batch begins, of ${jobsIn(count)} in progress` });
  });

  app.post("/-/apis/:name/unpause", async (c) => {
    const name = await batchApiName(c, apis);
    const count = await jobs.pauses.unpauseApi(name);
    return c.json({ message: `continued ${name}, with ${jobsIn(count)}` });
  });

  return app;
}

function shownRoutes({ apis, jobs, lists, reads, shown }: ApiRoutesDeps): Hono {
  const { deployed } = apis;
  const app = new Hono();
  const read = (state: ApiState, form: ConfigForm) => async () =>
    (await deployed.configText(state, form)) ?? "{}";
  const specOf = (c: Context, state: ApiState) =>
    shown.ofVersion(c, `${state.name} ${state.api_id} ${state.last_updated}`, read(state, "spec"));

  const view = async (c: Context, state: ApiState) => ({
    ...state,
    ...(state.kind === "BatchAPI" ? await jobs.records.summary(state.name) : {}),
    ...(state.kind === "RealtimeAPI" ? { metrics: await deployed.metrics(state.name) } : {}),
    endpoint: `${baseUrl(c)}${state.endpoint}`,
    path: state.endpoint,
  });

  /** Undefined if it was deleted meanwhile. */
  const textOf = async (c: Context, state: ApiState) => {
    const spec = await specOf(c, state);
    if (spec === "{}" && !(await deployed.isDeployed(state.name))) return undefined;
    return stringifyWithRaw(await view(c, state), { spec });
  };

  async function* list(c: Context, states: readonly ApiState[]): AsyncGenerator<string> {
    let separator = '{"apis":[';
    for (let from = 0; from < states.length; from += APIS_READ_TOGETHER) {
      const some = states.slice(from, from + APIS_READ_TOGETHER);
      for (const text of await Promise.all(some.map((state) => textOf(c, state)))) {
        if (text === undefined) continue;
        yield separator + text;
        separator = ",";
      }
    }
    yield separator === "," ? "]}" : `${separator}]}`;
  }

  app.get("/-/apis", (c) =>
    reads.take(c, async (pass) => jsonChunks(c, lists, list(c, await deployed.list()), pass)),
  );

  app.get("/-/apis/:name", async (c) => {
    const state = await deployed.get(c.req.param("name"));
    const spec = await specOf(c, state);
    const submitted_api_spec = await shown.submitted(c, read(state, "submitted"));
    const history = await deployed.history(state.name);
    return jsonText(stringifyWithRaw({ ...(await view(c, state)), history }, { spec, submitted_api_spec }));
  });

  return app;
}

export function apiRoutes(deps: ApiRoutesDeps): Hono {
  const { apis, jobs, keys, apiLogDirectory } = deps;
  const app = new Hono();
  const { deployed } = apis;

  app.route("/", deployRoutes(apis, keys));
  app.route("/", pauseRoutes(apis, jobs));
  app.route("/", shownRoutes(deps));

  app.post("/-/apis/:name/refresh", async (c) => {
    const name = c.req.param("name");
    await apis.refresh(name, flag(c, "force"));
    return c.json({ message: `updating ${name}` });
  });

  app.post("/-/apis/:name/rollback", async (c) => {
    const name = c.req.param("name");
    const apiId = await apis.rollback(name, c.req.query("api_id") || undefined, doneBy(c, keys));
    return c.json({ message: `updating ${name} to ${apiId}` });
  });

  app.get("/-/apis/:name/export", async (c) => {
    const { name } = c.req.param();
    const archive = await apis.export(name, c.req.query("api_id") || undefined, senderOf(c, keys));
    return new Response(Readable.toWeb(archive) as ReadableStream, {
      headers: { "content-type": "application/gzip" },
    });
  });

  app.delete("/-/apis/:name", async (c) => {
    const name = c.req.param("name");
    if (!flag(c, "records")) {
      await apis.delete(name);
      return c.json({ message: `deleting ${name}` });
    }
    tellAudit(c, "with the records of its jobs");
    const jobs = await apis.deleteWithRecords(name);
    return c.json({ message: `deleting ${name} and the records of its ${jobs} jobs` });
  });

  app.get("/-/apis/:name/logs", async (c) => {
    const { name } = await deployed.get(c.req.param("name"));
    // A deleted API's log is removed too.
    return logsResponse(c, deps, apiLogDirectory(name), async () => !(await deployed.isDeployed(name)));
  });

  return app;
}

function jobsIn(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}

/** Throws if the API is not a batch API. */
async function batchApiName(c: Context, { deployed }: Apis): Promise<string> {
  const { name, kind } = await deployed.get(c.req.param("name")!);
  if (kind === "BatchAPI") return name;
  throw new ServiceError("wrong_state", `${name} is a ${kind}; only the jobs of a BatchAPI can be paused`);
}
