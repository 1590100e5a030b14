/**
 * Runs after all routes: for a known address with another method, it responds with a 405 that names the legal methods.
 */
import type { Hono } from "hono";
import { ServiceError } from "../contracts/errors.ts";
import { OPERATIONS } from "../contracts/http/operations.ts";
import { API } from "./jobs/job-rounds.ts";
import { batchApi, type JobRoutesDeps } from "./jobs/jobs.ts";

export function refuseOtherMethods(app: Hono, deps: JobRoutesDeps): void {
  for (const path of new Set(OPERATIONS.map((operation) => operation.path))) {
    const legal = OPERATIONS.filter((operation) => operation.path === path);
    const allow = legal.map(({ method }) => method.toUpperCase()).join(", ");
    app.all(path.replace("/{api}", API).replace(/\/\{(\w+)\}/g, "/:$1"), async (c) => {
      if (c.req.param("api") !== undefined) await batchApi(c, deps, "read");
      const message = `${c.req.method} is not allowed here; allowed: ${allow}`;
      throw new ServiceError("method_not_allowed", message, { allow });
    });
  }
}
