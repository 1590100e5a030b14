/** `/-/applications`: declarative applications and their resources. */
import { type Context, Hono } from "hono";
import type { ApplicationState, ResourceState } from "../contracts/config/applications.ts";
import { LIST_ROWS_AT_ONCE } from "../contracts/limits/responses.ts";
import type { Applications } from "../legacy/applications.ts";
import { logsResponse } from "./answers/logs.ts";
import { jsonChunks } from "./answers/long-json.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import type { ShownConfig } from "./answers/shown-config.ts";
import { baseUrl } from "./requests/forwarded.ts";
import { flag, isTrue } from "./requests/parameters.ts";
import type { ReadsInTurn } from "./requests/reads-in-turn.ts";

export interface ApplicationRoutesDeps {
  applications: Applications;
  streams: OpenStreams;
  lists: OpenStreams;
  reads: ReadsInTurn;
  shown: ShownConfig;
}

export function applicationRoutes(deps: ApplicationRoutesDeps): Hono {
  const { applications, lists, reads, shown } = deps;
  const app = new Hono();
  const textOf = (c: Context, state: ApplicationState) =>
    applicationText(state, baseUrl(c), shown.ofControl(c));

  async function* list(c: Context): AsyncGenerator<string> {
    let separator = '{"applications":[';
    for await (const state of applications.list()) {
      yield separator;
      yield* textOf(c, state);
      separator = ",";
    }
    yield separator === "," ? "]}" : `${separator}]}`;
  }

  app.get("/-/applications", (c) => reads.take(c, (pass) => jsonChunks(c, lists, list(c), pass)));

  app.get("/-/applications/:name", (c) =>
    reads.take(c, async () => {
      const state = await applications.get(c.req.param("name"), isTrue(c.req.query("values")));
      return jsonChunks(c, lists, textOf(c, state));
    }),
  );

  app.post("/-/applications/:name/refresh", async (c) => {
    const message = await applications.refresh(c.req.param("name"), flag(c, "force"));
    return c.json({ message });
  });

  app.delete("/-/applications/:name", async (c) =>
    c.json({ message: await applications.delete(c.req.param("name")) }),
  );

  app.get("/-/applications/:name/resources/:resource/logs", async (c) => {
    const { name, resource } = c.req.param();
    const { directory, isOver } = await applications.logOf(name, c.req.query("kind"), resource);
    return logsResponse(c, deps, directory, async () => isOver());
  });

  return app;
}

/** An application with the addresses of its APIs, and with the configurations that the caller may see. */
async function* applicationText(
  { resources, ...state }: ApplicationState,
  base: string,
  show: (config: unknown) => unknown,
): AsyncGenerator<string> {
  yield `${JSON.stringify(state).slice(0, -1)},"resources":[`;
  const textOf = (resource: ResourceState) => {
    const api = resource.api && { ...resource.api, endpoint: `${base}${resource.api.endpoint}` };
    return JSON.stringify({ ...resource, config: show(resource.config), api });
  };
  for (let at = 0; at < resources.length; at += LIST_ROWS_AT_ONCE) {
    const texts = resources.slice(at, at + LIST_ROWS_AT_ONCE).map(textOf);
    yield (at === 0 ? "" : ",") + texts.join(",");
  }
  yield "]}";
}
