/**
 * The operations that say why an API is slow, a job is stuck or a rollout is not done (docs/contract/explain.md), and when
 * the workers of a job worked (docs/contract/jobs.md#workers).
 */
import * as z from "zod";
import { api, JOB_ERRORS, job } from "./job-operations.ts";
import { CONTROL_ERRORS, type Operation, text } from "./operation.ts";

/** Every cause that a finding may have, with the question that it answers. docs/contract/explain.md has a row for each. */
export const CAUSES = [
  ...["database_unreachable", "disk_full", "gateway_missing"],
  ...[
    "compute_too_large",
    "compute_held",
    "open_files_short",
    "memory_near_limit",
    "installing",
    "starting",
    "start_slow",
  ],
  ...["rollout_failing", "rollout_waits", "requirements_failed", "init_failed", "start_timed_out"],
  ...["start_out_of_memory", "worker_died_in_start", "start_failed", "crash_loop", "version_unreadable"],
  ...[
    "scaled_to_zero",
    "waking",
    "at_max_replicas",
    "queue_wait_dominates",
    "predict_slow",
    "predict_errors",
  ],
  ...["rejected_queue_full", "rejected_queue_timeout", "rejected_rate_limited", "rejected_body_too_large"],
  ...["rejected_key", "rejected_timeout", "rejected_not_ready", "rejected_other"],
  ...["api_paused", "job_paused", "job_paused_in_copy", "enqueue_turn", "reading_input", "store_unreachable"],
  ...["starved", "straggler", "batches_fail", "attempts_fail", "batches_time_out", "out_of_memory"],
  ...["workers_die", "timeout_near", "messages_wait", "job_ending"],
  ...["store_forbidden", "bucket_missing", "input_failed", "output_failed", "version_gone", "internal_error"],
  ...["errors_rose", "latency_rose", "wait_rose", "rejections_rose", "version_changed", "replicas_lost"],
  ...["replicas_fell", "server_restarted", "requests_rose", "jobs_began", "nothing_changed"],
  ...["nothing_differed", "nothing_known", "was_slow", "became_slow"],
  ...["job_stopped", "job_timed_out", "job_failed", "job_succeeded", "all_well"],
] as const;

const findingSchema = z.strictObject({
  cause: z.string().meta({ description: "a stable name, such as compute_held" }),
  severity: z.enum(["error", "warning", "info"]),
  title: z.string().meta({ description: "the cause in a sentence, with its most important number" }),
  evidence: z.array(z.string()).meta({ description: "the numbers and texts that show it" }),
  cure: z.string().meta({ description: "what to do; empty if there is nothing to do" }),
  command: z.string().nullable().meta({ description: "a command that shows more or repairs it" }),
});
export type Finding = z.infer<typeof findingSchema>;

export const explanationSchema = z.strictObject({
  api_name: z.string(),
  job_id: z.string().nullable(),
  summary: z.string(),
  findings: z.array(findingSchema).meta({ description: "the most important one first; never empty" }),
  past: z
    .strictObject({
      at: z.string(),
      from: z.string().nullable().meta({ description: "when it began to differ; null if nothing did" }),
      to: z.string().nullable(),
    })
    .optional()
    .meta({ description: "with `at` only. Times in texts are UTC, such as 2026-11-28T14:05Z" }),
});
export type Explanation = z.infer<typeof explanationSchema>;

const SPAN_ENDS = ["ended", "died", "failed", "recycled", "yielded", "lost"] as const;

const workerSpanSchema = z.strictObject({
  worker_id: z.string(),
  started_time: z.string(),
  ready_time: z.string().nullable().meta({ description: "null: it was not ready (yet)" }),
  ended_time: z.string().nullable().meta({ description: "null: it works" }),
  how: z.enum(SPAN_ENDS).nullable().meta({
    description:
      "how it ended: with the job or because it was no longer needed; it died; it could not be set up; it reached max_requests or max_age; it yielded its compute; or it ended with its server",
  }),
  reason: z.string().nullable().meta({ description: "such as an exit code, or the exception of __init__" }),
  batches: z.int().meta({ description: "batches that it got" }),
  workers: z
    .int()
    .meta({ description: "more than 1 in the last row of a job with very many: it counts several" }),
  batch_in_hand: z.int().nullable().meta({ description: "now; null if it has none" }),
  in_hand_s: z.number().nullable().meta({ description: "for how long nothing was heard about it" }),
});
export const jobWorkersSchema = z.strictObject({ workers: z.array(workerSpanSchema) });
export type JobWorkersShown = z.infer<typeof jobWorkersSchema>;
export type WorkerSpanShown = JobWorkersShown["workers"][number];

export const EXPLAIN_OPERATIONS: readonly Operation[] = [
  {
    id: "explainApi",
    method: "get",
    path: "/-/apis/{name}/explain",
    about: "say why an API is slow, fails or does not serve, with the evidence and the cure",
    scope: "view",
    parameters: [
      { name: "name", in: "path", about: "the API's name", schema: text },
      {
        name: "at",
        in: "query",
        about:
          "say instead what differed at this time of the last two weeks from the hours before, and what changed just before: a timestamp such as 2026-11-24T14:05:00Z, Unix seconds, or a duration before now such as 30m",
        schema: text,
      },
    ],
    answers: { "application/json": explanationSchema },
    errors: [...CONTROL_ERRORS, "invalid_request", "api_not_found"],
  },
  {
    id: "explainJob",
    method: "get",
    path: "/{api}/{job}/explain",
    about: "say why a job waits, is slow or failed, with the evidence and the cure",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "application/json": explanationSchema },
    errors: JOB_ERRORS,
  },
  {
    id: "getJobWorkers",
    method: "get",
    path: "/{api}/{job}/workers",
    about: "when each worker of a job started, was ready and ended, why, and what it has in hand",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "application/json": jobWorkersSchema },
    errors: JOB_ERRORS,
  },
];
