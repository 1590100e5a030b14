/** `/-/applications`: declarative applications and their resources. */
import { Hono } from "hono";
import type { ApplicationState } from "../contracts/config/applications.ts";
import type { Applications } from "../legacy/applications.ts";
import { logsResponse } from "./answers/logs.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import { baseUrl } from "./requests/forwarded.ts";
import { flag, isTrue } from "./requests/parameters.ts";

export interface ApplicationRoutesDeps {
  applications: Applications;
  streams: OpenStreams;
  lists: OpenStreams;
}

export function applicationRoutes(deps: ApplicationRoutesDeps): Hono {
  const { applications } = deps;
  const app = new Hono();

  app.get("/-/applications", async (c) => {
    const states = await applications.list();
    return c.json({ applications: states.map((state) => withAddresses(state, baseUrl(c))) });
  });

  app.get("/-/applications/:name", async (c) =>
    c.json(
      withAddresses(await applications.get(c.req.param("name"), isTrue(c.req.query("values"))), baseUrl(c)),
    ),
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

function withAddresses(state: ApplicationState, base: string): ApplicationState {
  const resources = state.resources.map((resource) =>
    resource.api === undefined
      ? resource
      : { ...resource, api: { ...resource.api, endpoint: `${base}${resource.api.endpoint}` } },
  );
  return { ...state, resources };
}
