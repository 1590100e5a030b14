/** Schemas of the responses that are not errors, for the API's description and for clients. */
import * as z from "zod";
import { API_STATUSES } from "../config/api-statuses.ts";
import { JOB_STATUSES, jobStatusSchema } from "../jobs.ts";
import { KEY_SCOPES } from "../keys.ts";
import { loopDelaySchema } from "../reports.ts";

const count = z.int().min(0);
const time = z.string().meta({ description: "UTC, nine fraction digits, Z" });

/** docs/contract/jobs.md#job-record */
export const jobRecordSchema = jobStatusSchema.pick({
  job_id: true,
  api_name: true,
  api_id: true,
  workers: true,
  config: true,
  queue_url: true,
  sqs_url: true,
  timeout: true,
  queue_dead_letter_queue: true,
  on_failure: true,
  priority: true,
  created_time: true,
});

/** docs/contract/jobs.md#status-envelope */
export const jobEnvelopeSchema = z.strictObject({
  job_status: jobStatusSchema,
  api_spec: z.string().meta({ description: "the API's configuration: base64 of its msgpack" }),
  endpoint: z.string(),
});

/** Without `config`, which may have 256 KiB per job. The job's own record has it. */
export const jobListSchema = z.strictObject({
  jobs: z.array(jobStatusSchema.omit({ config: true })),
  next_cursor: z.string().nullable(),
});

const errorSchema = z.strictObject({ type: z.string(), message: z.string(), traceback: z.string() });

export const failureGroupsSchema = z.strictObject({
  groups: z.array(
    z.strictObject({
      batches: count,
      first_batch_index: count,
      common_message: z.string().meta({
        description: "what the messages of some of them have in common; … stands for numbers that differ",
      }),
      error: errorSchema.meta({ description: "of the first batch; the others differ only in numbers" }),
    }),
  ),
});

export const failureListSchema = z.strictObject({
  failures: z.array(
    z.strictObject({
      batch_id: z.string(),
      batch_index: count,
      item_index: count.optional().meta({ description: "the guilty item, of a batch that was split" }),
      item_count: z
        .int()
        .min(2)
        .optional()
        .meta({ description: "from item_index on, if the items could not be told apart" }),
      source: z
        .strictObject({ path: z.string(), line: z.int().min(1).optional() })
        .optional()
        .meta({ description: "the file of the item, and its line there" }),
      round: z.int().min(1).meta({ description: "of the job, in which it failed" }),
      receive_count: z.int().min(1).meta({ description: "attempts counted against it in that round" }),
      error: errorSchema,
      letter_error: z.string().optional().meta({ description: "why it is not in the dead letter queue" }),
      payload: z
        .array(z.unknown())
        .nullable()
        .meta({ description: "the items; null when the input is gone" }),
      payload_error: z.string().optional(),
    }),
  ),
  next_cursor: z.string().nullable(),
});

/** docs/contract/submitting.md#dry-run-answer */
export const previewSchema = z.strictObject({
  files: z.array(z.string()),
  file_count: count,
  total_bytes: count,
  batch_count: count.nullable(),
});

export const queueSchema = z.strictObject({
  job_id: z.string(),
  batches_in_queue: count,
  batch_metrics: jobStatusSchema.shape.batch_metrics,
  total_batch_count: count.nullable(),
});

/** A dead letter queue. For a queue of SQS, the counts are of messages that wait to be sent. */
export const deadLetterQueueSchema = z.strictObject({
  name: z.string(),
  messages: count,
  oldest_sent_time: time.nullable(),
});
export const queueListSchema = z.strictObject({
  queues: z.array(deadLetterQueueSchema),
  next_cursor: z.string().nullable(),
});

/** docs/contract/failing-batches.md#messages */
export const letterListSchema = z.strictObject({
  messages: z.array(
    z.strictObject({
      message_id: z.string(),
      body: z.string().meta({ description: "the batch's JSON array" }),
      attributes: z.record(z.string(), z.string()),
      sent_time: time,
    }),
  ),
  next_cursor: z.string().nullable(),
});

export const messageSchema = z.strictObject({ message: z.string() });

const kind = z.enum(["RealtimeAPI", "BatchAPI", "TrafficSplitter"]);

export const deployedSchema = z.array(
  z.strictObject({
    api: z.string(),
    kind: kind.or(z.literal("Application")),
    api_id: z.string(),
    message: z.string(),
    endpoint: z.string(),
  }),
);

const metricsSchema = z.strictObject({
  requests: z.strictObject({ "2xx": count, "4xx": count, "5xx": count }),
  avg_request_ms: z.number().nullable(),
  classes: z.array(z.strictObject({ name: z.string(), count })).optional(),
  values: z.strictObject({ count, avg: z.number(), min: z.number(), max: z.number() }).optional(),
});

const apiViewSchema = z.strictObject({
  name: z.string(),
  kind,
  api_id: z.string(),
  status: z.enum(API_STATUSES),
  message: z.string().optional().meta({
    description:
      "why the newest version does not serve or has too few replicas, or that an installation takes long",
  }),
  up_to_date_replicas: count,
  requested_replicas: count,
  requested_because: z.string().optional().meta({ description: "why the API needs this many replicas" }),
  replicas: z.array(
    z.strictObject({
      worker_id: z.string(),
      pid: count,
      state: z.enum(["initializing", "ready", "draining", "gone"]),
      is_up_to_date: z.boolean(),
    }),
  ),
  last_updated: time,
  spec: z.unknown().meta({ description: "the normalised configuration" }),
  endpoint: z.string(),
  path: z.string().meta({ description: "path of the endpoint, without the prefix of a proxy" }),
  metrics: metricsSchema.optional().meta({ description: "requests of a real-time API over two weeks" }),
  running_jobs: count.optional(),
  latest_job: z.strictObject({ job_id: z.string(), created_time: time }).nullable().optional(),
  paused_time: time.optional().meta({ description: "since when a batch API is paused" }),
});

/** An API as `GET /-/apis` shows it. */
export type ApiView = z.infer<typeof apiViewSchema>;

export const apiListSchema = z.strictObject({ apis: z.array(apiViewSchema) });
export const describedApiSchema = apiViewSchema.extend({
  submitted_api_spec: z.unknown().meta({ description: "its entry in the configuration, as submitted" }),
  history: z.array(z.strictObject({ api_id: z.string(), deployed_time: time })),
});
export type DescribedApi = z.infer<typeof describedApiSchema>;

const keySchema = z.strictObject({
  id: z.string(),
  name: z.string().nullable(),
  scope: z.enum(KEY_SCOPES),
  api: z.string().nullable(),
  created_time: time,
  rate: z.strictObject({ requests: count, seconds: count }).nullable(),
  expires_time: time.nullable(),
  revoked_time: time.nullable().meta({ description: "null: revoked keys are not shown" }),
  last_used_time: time.nullable().meta({ description: "exact to a minute; null if it was never used" }),
});
export const keyListSchema = z.strictObject({ keys: z.array(keySchema) });
export const createdKeySchema = keySchema.extend({
  key: z.string().meta({ description: "shown only once" }),
});

export const versionSchema = z.strictObject({ version: z.string() });
export const proofSchema = z.strictObject({ proof: z.string() });

/** What enforces `compute.mem`: the kernel, a poll four times a second, or nothing. */
const memoryLimits = z.enum(["kernel", "watched", "none"]);
export type MemoryLimits = z.infer<typeof memoryLimits>;

const computePart = z.strictObject({
  total: z.number().meta({ description: "what replicas and workers may reserve together" }),
  free: z.number(),
  machine: z.number().meta({ description: "what the machine has" }),
});
const computeSchema = z.strictObject({
  cpus: computePart,
  memory_bytes: computePart,
  gpus: computePart.omit({ machine: true }),
});
export type ComputeShown = z.infer<typeof computeSchema>;

export const healthSchema = z.strictObject({
  status: z.literal("ok"),
  memory_limits: memoryLimits,
  compute: computeSchema,
  warnings: z
    .array(z.string())
    .meta({ description: "APIs that serve, but not as deployed, and installations that take long" }),
  event_loops: z
    .array(
      loopDelaySchema.extend({ process: z.enum(["controller", "gateway"]) }).meta({
        description: "event loop delay of a process in milliseconds, over its last busy minutes",
      }),
    )
    .meta({ description: "of the slowest gateway, if there are several" }),
  apis: z.array(z.strictObject({ name: z.string(), kind, status: z.string() })),
});

/** docs/contract/errors.md#error-body */
export const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  message: z.string(),
  request_id: z.string(),
  errors: z.array(z.strictObject({ pointer: z.string(), detail: z.string() })).optional(),
  errors_total: z.int().optional(),
  guide: z.string().optional().meta({ description: "a documentation page about one of the errors" }),
});

export const jobStatusNames = z.enum(JOB_STATUSES);
