/** The controller's HTTP, behind the gateway. It combines one file per resource, and adds keys and errors. */
import { type Context, Hono } from "hono";
import type { Backups } from "../backup/take-backup.ts";
import type { Log } from "../base/log.ts";
import { asServiceError, problemHeaders, ServiceError, toProblem } from "../contracts/errors.ts";
import { type Report, readReport, type UsedKeyMinutes, usedKeysSchema } from "../contracts/reports.ts";
import { appliedSchema, type RefusedRoute, type SnapshotStamp } from "../contracts/routes.ts";
import type { Audit } from "../observe/audit.ts";
import { FaultLog } from "../observe/fault-log.ts";
import { databaseError, shortageError } from "./answers/shortages.ts";
import { setOnCut, streamText } from "./answers/stream-text.ts";
import { type ApiRoutesDeps, apiRoutes } from "./apis.ts";
import { type ApplicationRoutesDeps, applicationRoutes } from "./applications.ts";
import { auditResponse } from "./audit.ts";
import { backupRoutes } from "./backups.ts";
import { explainRoutes } from "./dashboard/explain.ts";
import { type OverviewRoutesDeps, overviewRoutes } from "./dashboard/overview-routes.ts";
import { pageRoutes } from "./dashboard/pages.ts";
import { type SeriesRoutesDeps, seriesRoutes } from "./dashboard/series.ts";
import { type SessionRoutesDeps, sessionRoutes } from "./dashboard/sessions.ts";
import { type VersionRoutesDeps, versionRoutes } from "./dashboard/versions.ts";
import { docsRoutes } from "./docs.ts";
import type { ExplainDeps } from "./explain/explain-deps.ts";
import { failingNow, stillFails } from "./explain/failing-now.ts";
import { slowness } from "./explain/slowness.ts";
import { type HealthRoutesDeps, healthRoutes } from "./health.ts";
import { type JobRoutesDeps, jobRoutes } from "./jobs/jobs.ts";
import { keyRoutes } from "./keys.ts";
import { metricsRoutes } from "./metrics.ts";
import { refuseOtherMethods } from "./other-methods.ts";
import { liveOverview, tellChanges } from "./overview/overview-stream.ts";
import { type QueueRoutesDeps, queueRoutes } from "./queues.ts";
import { auditChanges } from "./requests/audited.ts";
import { assertKey, assertMayKnow } from "./requests/authorization.ts";
import { clientLeft, hasLeft } from "./requests/connection.ts";
import { controlListenerOnly, requestId } from "./requests/forwarded.ts";
import { neededScope } from "./requests/needed-scope.ts";

export interface ControlDeps
  extends ApiRoutesDeps,
    ApplicationRoutesDeps,
    JobRoutesDeps,
    QueueRoutesDeps,
    HealthRoutesDeps,
    SessionRoutesDeps,
    SeriesRoutesDeps,
    VersionRoutesDeps,
    ExplainDeps,
    OverviewRoutesDeps {
  log: Log;
  /** The control plane has a separate listener. */
  hasControlListener: boolean;
  /** The log of changes and refused requests, with their callers. */
  audit: Audit;
  backups: Backups;
  auditDirectory: string;
  dashboardDirectory: string;
}

function toServiceError(thrown: unknown): ServiceError {
  return shortageError(thrown) ?? databaseError(thrown) ?? asServiceError(thrown);
}

export function controlApp(deps: ControlDeps): Hono {
  const app = new Hono();
  const faults = new FaultLog(({ level, msg, ...line }) => deps.log[level](line, msg));
  const record = (error: ServiceError, c: Context) =>
    faults.record(error, { requestId: requestId(c), method: c.req.method, url: c.req.path });
  app.use("*", async (c, next) => {
    deps.loop.touch();
    setOnCut(c, (thrown) => record(toServiceError(thrown), c));
    await next();
  });
  app.onError((thrown, c) => {
    const error = toServiceError(thrown);
    // Not a fault: the body ended because its client left.
    if (!hasLeft(c)) record(error, c);
    return new Response(JSON.stringify(toProblem(error, requestId(c))), {
      status: error.status,
      headers: problemHeaders(error),
    });
  });
  app.notFound((c) => {
    if (!c.req.path.startsWith("/-")) assertMayKnow(c, deps.keys);
    throw new ServiceError("route_not_found", `${c.req.path} is not an address of this server`);
  });
  app.use("/-/*", controlListenerOnly(deps.hasControlListener));
  app.route("/", docsRoutes(deps.version));
  app.route("/", pageRoutes(deps.dashboardDirectory));
  app.use("*", auditChanges(deps));
  const overview = liveOverview(deps, {
    slowness: (name) => slowness(deps, name),
    failingNow: (name) => failingNow(deps, name),
    stillFails: (name) => stillFails(deps, name),
  });
  app.use("*", tellChanges(overview));
  const sessions = sessionRoutes(deps);
  app.route("/", sessions.open);
  // Callers that may submit to an API may read its queue's counts. The queue's own route checks that.
  app.use("/-/*", async (c, next) => {
    const scope = neededScope(c.req.method, c.req.path);
    if (scope !== "submit") assertKey(c, deps.keys, { scope });
    await next();
  });
  app.route("/", sessions.closed);
  app.get("/-/version", (c) => c.json({ version: deps.version }));
  app.route("/", healthRoutes(deps));
  app.post("/-/jobs/unpause", async (c) => {
    const count = await deps.jobs.pauses.unpauseAll();
    return c.json({ message: count === 1 ? "continued 1 job" : `continued ${count} jobs` });
  });
  app.get("/-/audit", (c) => auditResponse(c, deps, deps.auditDirectory));
  app.route("/", backupRoutes(deps.backups));
  app.route("/", keyRoutes(deps.keys));
  app.route("/", apiRoutes(deps));
  app.route("/", versionRoutes(deps));
  app.route("/", applicationRoutes(deps));
  app.route("/", metricsRoutes(deps));
  app.route("/", seriesRoutes(deps));
  app.route("/", queueRoutes(deps));
  app.route("/", explainRoutes(deps));
  app.route("/", overviewRoutes(deps, overview));
  app.route("/", jobRoutes(deps));
  refuseOtherMethods(app, deps);
  return app;
}

export interface InternalDeps {
  snapshots: {
    /** The whole snapshot as a line. */
    whole: () => string;
    /** Calls back with each later change, as a line. */
    subscribe: (gateway: string, listener: (line: string) => void) => () => void;
    applied: (gateway: string, stamp: SnapshotStamp, refused: readonly RefusedRoute[]) => void;
  };
  killReplica: (workerId: string) => void;
  replaceReplica: (workerId: string) => void;
  wakeApi: (name: string) => void;
  keysUsed: (used: UsedKeyMinutes) => void;
  /** Takes a gateway's numbers. Resolves once they are durable. */
  report: (read: { report: Report; refused: string[] }) => Promise<void>;
}

/**
 * Serves gateways only, because routes contain the workers' tokens. It has its own socket, to which nothing is
 * forwarded. So no spelling of a path reaches it from outside.
 */
export function internalApp({
  snapshots,
  killReplica,
  replaceReplica,
  wakeApi,
  keysUsed,
  report,
}: InternalDeps): Hono {
  const app = new Hono();
  app.post("/routes/applied", async (c) => {
    const { gateway, refused, ...stamp } = appliedSchema.parse(await c.req.json());
    snapshots.applied(gateway, stamp, refused);
    return c.json({});
  });
  app.get("/routes", (c) => {
    const gateway = c.req.query("gateway") ?? "";
    const left = clientLeft(c);
    async function* lines() {
      const queue = [snapshots.whole()];
      let wake = () => {};
      left.addEventListener("abort", () => wake());
      const unsubscribe = snapshots.subscribe(gateway, (line) => {
        queue.push(line);
        wake();
      });
      try {
        // Its subscription ends with it, not with the next change: it counts as connected until then.
        while (!left.aborted) {
          const line = queue.shift();
          if (line !== undefined) yield line;
          else await new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        unsubscribe();
      }
    }
    return streamText(c, lines(), "application/x-ndjson");
  });
  app.post("/workers/:id/kill", (c) => {
    killReplica(c.req.param("id"));
    return c.json({});
  });
  app.post("/workers/:id/replace", (c) => {
    replaceReplica(c.req.param("id"));
    return c.json({});
  });
  app.post("/apis/:name/wake", (c) => {
    wakeApi(c.req.param("name"));
    return c.json({});
  });
  app.post("/keys/used", async (c) => {
    keysUsed(usedKeysSchema.parse(await c.req.json()).keys);
    return c.json({});
  });
  app.post("/reports", async (c) => {
    await report(readReport(await c.req.json()));
    return c.json({});
  });
  return app;
}
