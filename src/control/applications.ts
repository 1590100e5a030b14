/** `/-/applications`: declarative applications and their resources. */
import { type Context, Hono } from "hono";
import type { ApplicationState } from "../contracts/config/applications.ts";
import type { Applications } from "../legacy/applications.ts";
import { logsResponse } from "./answers/logs.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import type { ShownConfig } from "./answers/shown-config.ts";
import { baseUrl } from "./requests/forwarded.ts";
import { flag, isTrue } from "./requests/parameters.ts";

export interface ApplicationRoutesDeps {
  applications: Applications;
  streams: OpenStreams;
  lists: OpenStreams;
  shown: ShownConfig;
}

export function applicationRoutes(deps: ApplicationRoutesDeps): Hono {
  const { applications, shown } = deps;
  const app = new Hono();
  const viewOf = (c: Context, state: ApplicationState) => shownTo(state, baseUrl(c), shown.ofControl(c));

  app.get("/-/applications", async (c) => {
    const states = await applications.list();
    return c.json({ applications: states.map((state) => viewOf(c, state)) });
  });

  app.get("/-/applications/:name", async (c) =>
    c.json(viewOf(c, await applications.get(c.req.param("name"), isTrue(c.req.query("values"))))),
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
function shownTo(state: ApplicationState, base: string, show: (config: unknown) => unknown) {
  const resources = state.resources.map((resource) => ({
    ...resource,
    config: show(resource.config),
    ...(resource.api === undefined
      ? {}
      : { api: { ...resource.api, endpoint: `${base}${resource.api.endpoint}` } }),
  }));
  return { ...state, resources };
}
