/**
 * The HTTP operations at a batch API's address: submit, read, list and stop jobs, in both forms of the contract
 * (docs/contract/addresses.md#address-of-a-job).
 */

import { type Context, Hono } from "hono";
import { apiNotFound } from "../../apis/api-reader.ts";
import { needsKey } from "../../apis/api-routes.ts";
import type { Apis } from "../../apis/apis.ts";
import { endpointOf } from "../../apis/config/endpoints.ts";
import { isUlid } from "../../base/ids.ts";
import { quotedBeginning } from "../../base/printable.ts";
import { jobNotFound } from "../../batch/job-records.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { isTerminal } from "../../batch/records/job-status.ts";
import { assertLegalKey } from "../../batch/submit/idempotency.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { JOB_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import { SUBMISSION_BYTES_LIMIT } from "../../contracts/limits/submissions.ts";
import { logsResponse } from "../answers/logs.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { jsonText } from "../answers/stream-text.ts";
import { onlyLooks, tellAudit } from "../requests/audited.ts";
import { assertKey, assertMayKnow, doneBy, letAnybodyIn } from "../requests/authorization.ts";
import { bodyOwner, readBody } from "../requests/body.ts";
import { clientLeft } from "../requests/connection.ts";
import { forwarded, isInternal } from "../requests/forwarded.ts";
import { isTrue, limitOf } from "../requests/parameters.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";
import {
  type JobAnswerDeps,
  jobAddress,
  recordText,
  type StatusDeps,
  statusResponse,
  statusText,
} from "./job-answers.ts";
import { eventsResponse } from "./job-events.ts";
import { failuresResponse } from "./job-failures.ts";
import { resultsResponse, verifyResponse } from "./job-results.ts";
import { roundsResponse } from "./job-round-list.ts";
import { API, addRounds } from "./job-rounds.ts";
import { workersResponse } from "./job-workers.ts";
import { previewResponse } from "./preview.ts";
import { type PriorityBound, priorityMaxOf } from "./priority-bound.ts";

export interface JobRoutesDeps extends JobAnswerDeps, PriorityBound {
  apis: Apis;
  streams: OpenStreams;
  /** Of failures, and other long responses: logs that are not followed, dry runs. */
  lists: OpenStreams;
  reads: ReadsInTurn;
  jobLogDirectory: (jobId: string) => string;
}

export function jobRoutes(deps: JobRoutesDeps): Hono {
  const app = new Hono();
  addJobs(app, deps);
  addJobParts(app, deps);
  return app;
}

/** The operations of the contract. */
function addJobs(app: Hono, deps: JobRoutesDeps): void {
  const { jobs, keys } = deps;
  app.post(API, async (c) => {
    const isDryRun = isTrue(c.req.query("dryRun"));
    if (isDryRun) onlyLooks(c);
    const asked = await batchApi(c, deps, "change");
    assertNoJob(c);
    const key = c.req.header("idempotency-key");
    if (key !== undefined) assertLegalKey(key);
    const cure = "put the items into a file and submit it as delimited_files";
    const owner = bodyOwner(c, keys, asked.config.name);
    const body = await readBody(c, owner, { limit: SUBMISSION_BYTES_LIMIT, cure });
    // The API may have been deleted, or have come to need a key, since the request's head.
    const version = await batchApi(c, deps, "change");
    const about = {
      sender: owner.sender,
      by: doneBy(c, keys),
      left: clientLeft(c),
      priorityMax: priorityMaxOf(c, deps),
    };
    const sent = { body, idempotencyKey: key, ...about };
    if (isDryRun) return previewResponse(c, deps, await jobs.preview(submittedTo(version), sent));
    const { row, isReplay } = await jobs.submit(submittedTo(version), sent);
    tellAudit(c, row.job_id);
    return jsonText(await recordText(c, jobs, row), 200, {
      location: jobAddress(c, row),
      ...(isReplay ? { "idempotent-replayed": "true" } : {}),
    });
  });
  app.get(API, async (c) => {
    const { name } = await batchApi(c, deps, "read");
    if (c.req.query("jobID") === undefined) return listJobs(c, deps, name);
    return statusResponse(c, deps, await jobs.records.get(name, jobIdOf(c, name)));
  });
  app.get(`${API}/:job`, async (c) => {
    const { name } = await batchApi(c, deps, "read");
    return statusResponse(c, deps, await jobs.records.get(name, jobIdOf(c, name)));
  });
  for (const path of [API, `${API}/:job`]) {
    app.delete(path, async (c) => {
      const { name } = await batchApi(c, deps, "change");
      const jobId = jobIdOf(c, name);
      tellAudit(c, jobId);
      await jobs.stopJob(name, jobId);
      return c.json({ message: `stopped job ${jobId}` });
    });
  }
}

/** The operations besides submit, read and stop (docs/contract/jobs.md#list-of-jobs). */
function addJobParts(app: Hono, deps: JobRoutesDeps): void {
  const { jobs } = deps;
  const jobOf = async (c: Context, effect: Effect) => {
    const { name } = await batchApi(c, deps, effect);
    return jobs.records.get(name, jobIdOf(c, name));
  };
  app.get(`${API}/:job/failures`, async (c) => failuresResponse(c, deps, await jobOf(c, "read")));
  app.get(`${API}/:job/workers`, async (c) => workersResponse(c, deps, await jobOf(c, "read")));
  app.get(`${API}/:job/rounds`, async (c) => roundsResponse(c, deps, await jobOf(c, "read")));
  app.get(`${API}/:job/results`, async (c) => resultsResponse(c, deps, await jobOf(c, "read")));
  app.post(`${API}/:job/verify`, async (c) => verifyResponse(c, deps, await jobOf(c, "read")));
  addRounds(app, deps, (c) => jobOf(c, "change"));
  app.get(`${API}/:job/events`, async (c) => {
    const { api_name, job_id } = await jobOf(c, "read");
    return eventsResponse(c, deps, api_name, job_id);
  });
  app.get(`${API}/:job/logs`, async (c) => {
    const { api_name, job_id } = await jobOf(c, "read");
    const isOver = async () => isTerminal((await jobs.records.get(api_name, job_id)).status);
    return logsResponse(c, deps, deps.jobLogDirectory(job_id), isOver);
  });
}

function submittedTo({ name, api_id, config }: Awaited<ReturnType<typeof batchApi>>) {
  return { name, api_id, output: config.output };
}

/** Whether a request only reads, which a key with the scope `view` permits too. */
type Effect = "read" | "change";

/** The API of the request, if the request's key permits it. */
export async function batchApi(c: Context, { apis, keys }: JobRoutesDeps, effect: Effect) {
  const name = c.req.param("api")!;
  const version = await reachedVersion(c, apis, name);
  if (version === undefined) {
    assertMayKnow(c, keys);
    throw apiNotFound(name);
  }
  const { kind } = version.config;
  if (!needsKey(version, keys.isAny)) letAnybodyIn(c, keys, () => needsKey(version, keys.isAny));
  else if (kind === "BatchAPI") assertKey(c, keys, { scope: "submit", api: name, isRead: effect === "read" });
  else assertKey(c, keys, { scope: "predict", api: name });
  // The gateway names the endpoint of the request. It also forwards requests for names that it does not know.
  const isElsewhere = forwarded(c).endpoint === undefined && endpointOf(version.config) !== `/${name}`;
  if (isElsewhere) assertMayKnow(c, keys);
  else if (kind === "BatchAPI") return version;
  if (isElsewhere || c.req.param("job") !== undefined)
    throw new ServiceError("route_not_found", `${c.req.path} is not an address of this server`);
  // The gateway handles predictions itself. They come here only if it does not know yet about a very recent deployment.
  throw new ServiceError("api_not_ready", `${name} was deployed a moment ago; try again in a second`, {
    retryAfterS: 1,
  });
}

/** Undefined if the API is not deployed, or hidden from this caller by `api_gateway: none`. */
async function reachedVersion(c: Context, apis: Apis, name: string) {
  const version = await apis.deployed.findVersion(name);
  return version?.config.networking?.api_gateway === "none" && !isInternal(c) ? undefined : version;
}

/**
 * The job in the path or in `?jobID=`. If both are given, they must agree
 * (docs/contract/addresses.md#job-id-must-agree).
 */
export function jobIdOf(c: Context, apiName: string): string {
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

/** A submission that names a job would make another. */
function assertNoJob(c: Context): void {
  if (c.req.query("jobID") === undefined) return;
  const message = "a submission makes a new job, so it cannot name one; send it without jobID";
  throw new ServiceError("invalid_request", message);
}

async function listJobs(c: Context, deps: JobRoutesDeps, apiName: string): Promise<Response> {
  const limit = limitOf(c);
  const before = c.req.query("cursor");
  if (before !== undefined && !isUlid(before)) throw badCursor(before);
  const pages = deps.jobs.records.list(apiName, { limit, before, status: statusFilter(c) });
  return deps.reads.take(c, (pass) => jsonChunks(c, deps.lists, listText(c, deps, pages), pass));
}

/** Reads a few rows at a time, because reasons are long and a page has many. */
async function* listText(
  c: Context,
  deps: StatusDeps,
  pages: AsyncGenerator<JobRow[], boolean>,
): AsyncGenerator<string> {
  let last: string | undefined;
  let page = await pages.next();
  yield '{"jobs":[';
  for (; !page.done; page = await pages.next()) {
    const texts = page.value.map((row) => statusText(c, deps, row)).join(",");
    yield last === undefined ? texts : `,${texts}`;
    last = page.value.at(-1)!.job_id;
  }
  yield `],"next_cursor":${JSON.stringify(page.value ? last : null)}}`;
}

function statusFilter(c: Context): JobStatus | undefined {
  const status = c.req.query("status");
  if (status === undefined || (JOB_STATUSES as readonly string[]).includes(status))
    return status as JobStatus | undefined;
  throw new ServiceError(
    "invalid_request",
    `status must be one of ${JOB_STATUSES.join(", ")} (got ${quotedBeginning(status)})`,
  );
}

function badCursor(given: string): ServiceError {
  return new ServiceError(
    "invalid_request",
    `cursor must be the next_cursor of the previous page (got ${quotedBeginning(given)})`,
  );
}
