/** `/-/deploy` and `/-/apis`: what is deployed. */
import { Readable } from "node:stream";
import { type Context, Hono } from "hono";
import type { ApiState, Apis } from "../apis/apis.ts";
import { stringifyExact } from "../base/json-text.ts";
import type { Jobs } from "../batch/jobs.ts";
import { askForBody, assertStillOpen, baseUrl, isTrue, jsonText, tellAudit } from "./http.ts";
import { logsResponse } from "./logs.ts";
import type { OpenStreams } from "./open-streams.ts";

export interface ApiRoutesDeps {
  apis: Apis;
  jobs: Jobs;
  streams: OpenStreams;
  apiLogDirectory: (name: string) => string;
}

export function apiRoutes({ apis, jobs, streams, apiLogDirectory }: ApiRoutesDeps): Hono {
  const app = new Hono();

  app.post("/-/deploy", async (c) => {
    askForBody(c);
    const dryRun = isTrue(c.req.query("dry_run"));
    const deployed = await apis.deploy({
      archive: Readable.fromWeb(c.req.raw.body as never),
      onReceived: () => assertStillOpen(c),
      configFile: c.req.query("config") ?? "quern.yaml",
      only: c.req.queries("api") ?? [],
      dryRun,
      environment: c.req.query("environment") ?? "dev",
      force: isTrue(c.req.query("force")),
    });
    const names = deployed.map(({ api, api_id }) => `${api} ${api_id}`).join(", ");
    tellAudit(c, dryRun ? `checked only: ${names}` : names);
    return c.json(deployed.map((api) => ({ ...api, endpoint: `${baseUrl(c)}${api.endpoint}` })));
  });

  const view = async (c: Context, state: ApiState) => ({
    ...state,
    ...(state.kind === "BatchAPI" ? await jobs.summary(state.name) : {}),
    ...(state.kind === "RealtimeAPI" ? { metrics: await apis.metrics(state.name) } : {}),
    endpoint: `${baseUrl(c)}${state.endpoint}`,
    path: state.endpoint,
  });

  app.get("/-/apis", async (c) => {
    const states = await apis.list();
    return jsonText(stringifyExact({ apis: await Promise.all(states.map((state) => view(c, state))) }));
  });

  app.get("/-/apis/:name", async (c) => {
    const state = await apis.get(c.req.param("name"));
    const submitted_api_spec = await apis.submitted(state.name);
    const history = await apis.history(state.name);
    return jsonText(stringifyExact({ ...(await view(c, state)), submitted_api_spec, history }));
  });

  app.post("/-/apis/:name/refresh", async (c) => {
    const name = c.req.param("name");
    await apis.refresh(name, isTrue(c.req.query("force")));
    return c.json({ message: `updating ${name}` });
  });

  app.post("/-/apis/:name/rollback", async (c) => {
    const name = c.req.param("name");
    const apiId = await apis.rollback(name, c.req.query("api_id") || undefined);
    return c.json({ message: `updating ${name} to ${apiId}` });
  });

  app.delete("/-/apis/:name", async (c) => {
    const name = c.req.param("name");
    await apis.delete(name);
    return c.json({ message: `deleting ${name}` });
  });

  app.get("/-/apis/:name/logs", async (c) => {
    const { name } = await apis.get(c.req.param("name"));
    // The log of a deleted API is gone with it.
    return logsResponse(c, streams, apiLogDirectory(name), async () => !(await apis.isDeployed(name)));
  });

  return app;
}
