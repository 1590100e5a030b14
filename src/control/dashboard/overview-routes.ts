/** The operations over all APIs and jobs (contracts/http/overview-operations.ts). */
import { Hono } from "hono";
import type { LiveOverview } from "../overview/live-overview.ts";
import { type OverviewStreamDeps, overviewStreamRoutes } from "../overview/overview-stream.ts";
import { type JobListDeps, jobListRoutes } from "./job-list.ts";
import { type SelectionDeps, selectionRoutes } from "./selections.ts";

export interface OverviewRoutesDeps extends JobListDeps, OverviewStreamDeps, SelectionDeps {}

export function overviewRoutes(deps: OverviewRoutesDeps, live: LiveOverview): Hono {
  const app = new Hono();
  app.route("/", overviewStreamRoutes(deps, live));
  app.route("/", jobListRoutes(deps));
  app.route("/", selectionRoutes(deps));
  return app;
}
