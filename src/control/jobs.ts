/** A batch API's address: submit, read, list and stop jobs, in both forms of the contract (interface, section 4). */
import { encode } from "@msgpack/msgpack";
import { type Context, Hono } from "hono";
import type { Apis } from "../apis/apis.ts";
import { isUlid } from "../base/ids.ts";
import { stringifyWithRaw } from "../base/json-text.ts";
import { isTerminal } from "../batch/job-status.ts";
import type { JobRow } from "../batch/job-store.ts";
import { type Jobs, jobNotFound } from "../batch/jobs.ts";
import { jobRecord, jobStatus } from "../batch/read-job.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SUBMISSION_BYTES_LIMIT } from "../contracts/limits.ts";
import { baseUrl, isTrue, jsonText, limitOf, readBody } from "./http.ts";
import { logsResponse } from "./logs.ts";

export interface JobRoutesDeps {
  apis: Apis;
  jobs: Jobs;
  jobLogDirectory: (jobId: string) => string;
  /** The configuration that a job's API version was deployed with. */
  specOf: (apiName: string, apiId: string) => Promise<unknown>;
}

export function jobRoutes(deps: JobRoutesDeps): Hono {
  const app = new Hono();
  const { jobs, apis } = deps;

  app.post("/:api", async (c) => {
    const version = await batchApi(apis, c.req.param("api"));
    if (isTrue(c.req.query("dryRun")))
      throw new ServiceError("not_supported_yet", "dryRun is not supported yet; leave it out");
    const body = await readBody(
      c,
      SUBMISSION_BYTES_LIMIT,
      "put the items into a file and submit it as delimited_files",
    );
    const row = await jobs.submit(version, body);
    return jsonText(stringifyWithRaw(jobRecord(row, queueUrl(c, row)), { config: row.config_json }), 200, {
      location: `/${version.name}/${row.job_id}`,
    });
  });

  app.get("/:api", async (c) => {
    const { name } = await batchApi(apis, c.req.param("api"));
    return c.req.query("jobID") === undefined
      ? listJobs(c, deps, name)
      : statusResponse(c, deps, name, jobIdOf(c, name));
  });

  app.get("/:api/:job", async (c) => {
    const { name } = await batchApi(apis, c.req.param("api"));
    return statusResponse(c, deps, name, jobIdOf(c, name));
  });

  for (const path of ["/:api", "/:api/:job"]) {
    app.delete(path, async (c) => {
      const { name } = await batchApi(apis, c.req.param("api")!);
      const jobId = jobIdOf(c, name);
      await jobs.stopJob(name, jobId);
      return c.json({ message: `stopped job ${jobId}` });
    });
  }

  app.get("/:api/:job/logs", async (c) => {
    const { name } = await batchApi(apis, c.req.param("api"));
    const jobId = jobIdOf(c, name);
    await jobs.get(name, jobId);
    return logsResponse(c, deps.jobLogDirectory(jobId), async () =>
      isTerminal((await jobs.get(name, jobId)).status),
    );
  });

  app.get("/-/queues/:job", async (c) => {
    const jobId = c.req.param("job");
    const row = await jobs.byId(jobId);
    if (row === undefined) throw new ServiceError("job_not_found", `there is no queue "${jobId}"`);
    const status = jobStatus(row, queueUrl(c, row), undefined);
    const { job_id, batches_in_queue, batch_metrics, total_batch_count } = status;
    return c.json({ job_id, batches_in_queue, batch_metrics, total_batch_count: total_batch_count ?? null });
  });

  refuseOtherMethods(app, apis);
  return app;
}

/** Behind all routes: a known address with another method is a 405 that names the legal ones. */
function refuseOtherMethods(app: Hono, apis: Apis): void {
  for (const [path, allow] of [
    ["/:api", "GET, POST, DELETE"],
    ["/:api/:job", "GET, DELETE"],
    ["/:api/:job/logs", "GET"],
  ] as const) {
    app.all(path, async (c) => {
      if (c.req.param("api") === "-")
        throw new ServiceError("route_not_found", `${c.req.path} is not an address of this server`);
      await batchApi(apis, c.req.param("api")!);
      throw new ServiceError("method_not_allowed", `${c.req.method} is not allowed here; allowed: ${allow}`, {
        allow,
      });
    });
  }
}

async function batchApi(apis: Apis, name: string) {
  const version = await apis.version(name);
  if (version.config.kind === "BatchAPI") return version;
  // Predictions never come here, unless the gateway has not heard yet of what was deployed a moment ago.
  throw new ServiceError("api_not_ready", `${name} was deployed a moment ago; try again in a second`, {
    retryAfterS: 1,
  });
}

/** The job of the path or of `?jobID=`; given both they must agree (decision 1.2). */
function jobIdOf(c: Context, apiName: string): string {
  const fromPath = c.req.param("job");
  const fromQuery = c.req.query("jobID");
  if (fromPath !== undefined && fromQuery !== undefined && fromPath !== fromQuery) {
    throw new ServiceError(
      "invalid_request",
      `the path names job "${fromPath}" and jobID names "${fromQuery}"; give one of them`,
    );
  }
  const jobId = fromPath ?? fromQuery;
  if (jobId === undefined || jobId === "")
    throw new ServiceError("job_id_required", `name the job: /${apiName}/<job_id>, or ?jobID=<job_id>`);
  if (!isUlid(jobId)) throw jobNotFound(apiName, jobId);
  return jobId;
}

function queueUrl(c: Context, row: Pick<JobRow, "job_id">): string {
  return `${baseUrl(c)}/-/queues/${row.job_id}`;
}

function statusText(c: Context, { jobs }: JobRoutesDeps, row: JobRow): string {
  return stringifyWithRaw(
    { ...jobStatus(row, queueUrl(c, row), jobs.workerCounts(row.job_id)) },
    { config: row.config_json },
  );
}

async function statusResponse(
  c: Context,
  deps: JobRoutesDeps,
  apiName: string,
  jobId: string,
): Promise<Response> {
  const row = await deps.jobs.get(apiName, jobId);
  const spec = encode(await deps.specOf(apiName, row.api_id), { useBigInt64: true, ignoreUndefined: true });
  const envelope = {
    api_spec: Buffer.from(spec).toString("base64"),
    endpoint: `${baseUrl(c)}/${apiName}/${jobId}`,
  };
  return jsonText(stringifyWithRaw(envelope, { job_status: statusText(c, deps, row) }));
}

async function listJobs(c: Context, deps: JobRoutesDeps, apiName: string): Promise<Response> {
  const limit = limitOf(c);
  const rows = await deps.jobs.list(apiName, limit + 1, c.req.query("cursor"));
  const page = rows.slice(0, limit);
  const next = rows.length > limit ? page[page.length - 1]!.job_id : null;
  return jsonText(
    `{"jobs":[${page.map((row) => statusText(c, deps, row)).join(",")}],"next_cursor":${JSON.stringify(next)}}`,
  );
}
