/** The operations over all APIs and jobs: the overview, the list of all jobs, and actions on many of them at once. */
import * as z from "zod";
import { API_STATUSES } from "../config/api-statuses.ts";
import type { ErrorCode } from "../errors.ts";
import { JOB_STATUSES } from "../jobs.ts";
import {
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  SEARCH_LENGTH_MAX,
  SELECTION_NAMED_IDS_MAX,
} from "../limits/responses.ts";
import { healthSchema, jobListSchema } from "./answers.ts";
import { CONTROL_ERRORS, jsonSchema, type Operation, type Parameter, text } from "./operation.ts";
import { JOB_ID_PATTERN } from "./submission-description.ts";

const count = z.int().min(0);

const query = (name: string, about: string, schema: object): Parameter => ({
  ...{ name, in: "query", about, schema },
});

/** docs/contract/jobs.md#list-of-all-jobs */
export const allJobsSchema = jobListSchema.extend({
  count: count.meta({ description: "all that match the filter" }),
});

const JOB_FILTER: readonly Parameter[] = [
  query("api", "only jobs of this API", text),
  query("status", "only jobs in this status, or in one of several", {
    ...{ type: "array", items: { type: "string", enum: JOB_STATUSES } },
  }),
  query("search", "the start of a job's id, or a part of its API's name", {
    ...{ type: "string", maxLength: SEARCH_LENGTH_MAX },
  }),
  query("created_after", "only jobs that were submitted then or later, such as 2026-11-24T08:00:00Z", text),
  query("created_before", "only jobs that were submitted before", text),
];

const time = z.string();
const jobCounts = z.record(z.string(), count);
const severity = z.enum(["error", "warning"]);

const overviewApiSchema = z.strictObject({
  name: z.string(),
  kind: z.enum(["RealtimeAPI", "BatchAPI", "TrafficSplitter"]),
  api_id: z.string(),
  status: z.enum(API_STATUSES),
  message: z.string().nullable(),
  ready_replicas: count.meta({ description: "complete replicas of all versions that serve" }),
  requested_replicas: count,
  paused_time: time.nullable(),
  running_jobs: count
    .nullable()
    .meta({ description: "jobs that have not ended; null unless it is a batch API" }),
  last_updated: time,
  requests_per_s: z.number().meta({ description: "over the last minute, as the percentiles" }),
  errors_per_s: z.number().meta({ description: "responses with a 5xx status" }),
  latency_p50_s: z.number().nullable(),
  latency_p99_s: z.number().nullable(),
  in_flight: count,
  queue_depth: count,
  trouble: z
    .enum(["failing", "slow"])
    .nullable()
    .meta({ description: "what attention says of its requests" }),
  recent: z
    .array(count)
    .meta({ description: "requests of each of the last 30 minutes, the current one last" }),
});
export type OverviewApi = z.infer<typeof overviewApiSchema>;

const overviewJobSchema = z.strictObject({
  job_id: z.string(),
  api_name: z.string(),
  status: z.enum(JOB_STATUSES),
  created_time: time,
  round_time: time.nullable().meta({ description: "as in its status; null in its first round" }),
  total_batch_count: count.nullable(),
  succeeded: count,
  failed: count.meta({ description: "batches that finally failed" }),
  in_queue: count.nullable(),
  workers: count,
  running_workers: count,
  batches_per_s: z.number().nullable().meta({ description: "over the last half minute that was watched" }),
  eta_s: z.number().nullable(),
  waiting: z.string().nullable(),
  paused_time: time.nullable(),
});
export type OverviewJob = z.infer<typeof overviewJobSchema>;

const attentionSchema = z.strictObject({
  kind: z.enum(["server", "api", "job", "queue"]),
  name: z.string(),
  job_id: z.string().nullable(),
  severity,
  title: z.string(),
  time: time.nullable(),
});
export type Attention = z.infer<typeof attentionSchema>;

const overviewServerSchema = z.strictObject({
  version: z.string(),
  started_time: time,
  status: z.enum(["ok", "degraded"]),
  reasons: z.array(z.string()),
});

/** docs/contract/operations.md#overview */
const overviewSchema = z.strictObject({
  time,
  server: overviewServerSchema,
  compute: healthSchema.shape.compute,
  apis: z.array(overviewApiSchema),
  jobs: z.array(overviewJobSchema).meta({ description: "the newest that have not ended" }),
  job_counts: jobCounts.meta({ description: "by status, without status_; ended jobs count for ever" }),
  attention: z.array(attentionSchema).meta({ description: "what needs a person, errors first" }),
});
export type OverviewShown = z.infer<typeof overviewSchema>;

/** `event: changes`: only what has changed since the event before. */
export type OverviewChanges = Pick<OverviewShown, "time"> & Partial<OverviewShown> & { apis_gone?: string[] };

export const JOB_ACTIONS = ["stop", "resume", "redrive", "pause", "unpause"] as const;
export type JobAction = (typeof JOB_ACTIONS)[number];

const ids = z
  .array(z.string().max(64))
  .max(SELECTION_NAMED_IDS_MAX, `must contain at most ${SELECTION_NAMED_IDS_MAX} ids; select by a filter`);
const search = z.string().max(SEARCH_LENGTH_MAX, `must have at most ${SEARCH_LENGTH_MAX} characters`);

const jobSelectionSchema = z
  .strictObject({
    api: z.string().optional(),
    status: z.array(z.enum(JOB_STATUSES)).max(JOB_STATUSES.length).optional(),
    search: search.optional(),
    created_after: z.string().optional(),
    created_before: z.string().optional(),
    ids: ids.optional(),
  })
  .refine(
    ({ ids: named, api: _, ...filter }) => named === undefined || Object.keys(filter).length === 0,
    "ids go with api alone, and with no other filter",
  );
export type JobSelection = z.infer<typeof jobSelectionSchema>;

const messageSelectionSchema = z
  .strictObject({ queue: z.string(), search: search.optional(), ids: ids.optional() })
  .refine(({ ids: named, search: text }) => named === undefined || text === undefined, "give ids or search");
export type MessageSelection = z.infer<typeof messageSelectionSchema>;

/** docs/contract/jobs.md#selections */
export const selectionSchema = z
  .strictObject({ jobs: jobSelectionSchema.optional(), messages: messageSelectionSchema.optional() })
  .refine(({ jobs, messages }) => (jobs === undefined) !== (messages === undefined), "give jobs or messages");

/** The legal keys, by the part that they are in. */
export const SELECTION_KEYS: Record<string, readonly string[]> = {
  undefined: ["jobs", "messages"],
  jobs: ["api", "status", "search", "created_after", "created_before", "ids"],
  messages: ["queue", "search", "ids"],
};

export const selectedSchema = z.strictObject({
  selection_id: z.string(),
  kind: z.enum(["jobs", "messages"]),
  count,
  expires_time: z.string(),
});

export const changedSchema = z.strictObject({
  changed: count,
  skipped: z
    .array(z.strictObject({ id: z.string(), reason: z.string() }))
    .meta({ description: "the first of those that were not changed" }),
  skipped_count: count,
});

export const OVERVIEW_OPERATIONS: readonly Operation[] = [
  {
    id: "getOverview",
    method: "get",
    path: "/-/overview",
    about:
      "the server, its APIs, the newest jobs and what needs a person. As server-sent events: the whole, then what changes",
    scope: "view",
    parameters: [],
    answers: { "application/json": overviewSchema, "text/event-stream": null },
    errors: [...CONTROL_ERRORS, "database_unavailable"],
  },
  {
    id: "listAllJobs",
    method: "get",
    path: "/-/jobs",
    about: "the jobs of all APIs that match, newest first, and how many they are",
    scope: "view",
    parameters: [
      ...JOB_FILTER,
      query("limit", "at most this many", {
        ...{ type: "integer", minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT },
      }),
      query("cursor", "next_cursor of the previous page", { type: "string", pattern: JOB_ID_PATTERN }),
    ],
    answers: { "application/json": allJobsSchema },
    errors: [...CONTROL_ERRORS, "invalid_request"],
  },
  {
    id: "select",
    method: "post",
    path: "/-/selections",
    about:
      "count the jobs or messages that match now, and keep which they are for ten minutes. Jobs of an API need submit for it, all else admin",
    scope: "submit",
    parameters: [],
    body: { type: "application/json", schema: jsonSchema(selectionSchema, "input") },
    status: 201,
    answers: { "application/json": selectedSchema },
    errors: [
      ...CONTROL_ERRORS,
      ...["malformed_json", "invalid_request", "body_too_large", "queue_not_found", "origin_not_allowed"],
    ] as ErrorCode[],
  },
  {
    id: "actOnSelection",
    method: "post",
    path: "/-/selections/{id}/{action}",
    about:
      "do the same to all that were counted. Jobs: stop, resume, redrive, pause, unpause; messages: redrive, remove",
    scope: "submit",
    parameters: [
      { name: "id", in: "path", about: "its selection_id", schema: text },
      {
        ...{ name: "action", in: "path", about: "what to do" },
        schema: { type: "string", enum: [...JOB_ACTIONS, "remove"] },
      },
    ],
    answers: { "application/json": changedSchema },
    errors: [
      ...CONTROL_ERRORS,
      "invalid_request",
      "selection_not_found",
      "wrong_state",
      "origin_not_allowed",
    ],
  },
];
