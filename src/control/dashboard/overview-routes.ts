/** The operations over all APIs and jobs (contracts/http/overview-operations.ts). */
import { Hono } from "hono";
import { type JobListDeps, jobListRoutes } from "./job-list.ts";

export interface OverviewRoutesDeps extends JobListDeps {}

export function overviewRoutes(deps: OverviewRoutesDeps): Hono {
  const app = new Hono();
  app.route("/", jobListRoutes(deps));
  return app;
}
