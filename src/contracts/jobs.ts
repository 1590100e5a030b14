/** Job submissions, records and statuses as they cross the wire (docs/contract/jobs.md#job-record). */
import * as z from "zod";
import { JOB_PRIORITY_MAX } from "./limits/jobs.ts";
import { STORE_PATHS_MAX } from "./limits/submissions.ts";
import { textList } from "./validation/text-list.ts";

const atLeastOne = z.int("must be an integer").min(1, "must be an integer of at least 1");
const PRIORITY_RANGE = `must be an integer from -${JOB_PRIORITY_MAX} to ${JOB_PRIORITY_MAX}`;
const jobPriority = z
  .int(PRIORITY_RANGE)
  .min(-JOB_PRIORITY_MAX, PRIORITY_RANGE)
  .max(JOB_PRIORITY_MAX, PRIORITY_RANGE);
const fileVariant = z.strictObject({
  store_paths: textList(z.string().min(1, "must not be empty"))
    .min(1, "must contain at least 1 element")
    .max(
      STORE_PATHS_MAX,
      `must contain at most ${STORE_PATHS_MAX} elements; a prefix selects all files below it`,
    ),
  includes: textList(z.string()).optional(),
  excludes: textList(z.string()).optional(),
  batch_size: atLeastOne,
});

const deadLetterQueueSchema = z.strictObject({
  arn: z.string().min(1, "must not be empty"),
  max_receive_count: atLeastOne,
});

/** Where a job keeps what `predict()` returns (docs/contract/output.md). */
export const outputSchema = z.strictObject({
  store_path: z.string().min(1, "must not be empty").optional(),
  compression: z.enum(["none", "zstd"], 'must be "none" or "zstd"').optional(),
});

/**
 * A submission. `null` counts as absent for the three inputs (docs/contract/submitting.md#null-is-absent): callers of
 * this schema drop nulls first.
 */
export const submissionSchema = z.strictObject({
  workers: atLeastOne,
  timeout: atLeastOne.optional(),
  config: z.record(z.string(), z.unknown(), "must be an object").optional(),
  item_list: z
    .strictObject({
      // Not z.array, which would check five million items one by one.
      items: z
        .custom<unknown[]>((value) => Array.isArray(value), "must be an array")
        .refine((items) => items.length > 0, "must contain at least 1 element"),
      batch_size: atLeastOne,
    })
    .optional(),
  delimited_files: fileVariant.optional(),
  file_path_lister: fileVariant.optional(),
  queue_dead_letter_queue: deadLetterQueueSchema.optional(),
  output: outputSchema.optional(),
  on_failure: z.enum(["fail", "isolate"], 'must be "fail" or "isolate"').optional(),
  priority: jobPriority.optional(),
});
export type Submission = z.infer<typeof submissionSchema>;

export const INPUT_VARIANTS = ["item_list", "file_path_lister", "delimited_files"] as const;

/** The legal keys of each object of a submission, for messages about unknown keys. */
export const SUBMISSION_KEYS: Record<string, readonly string[]> = {
  "": Object.keys(submissionSchema.shape),
  item_list: ["items", "batch_size"],
  delimited_files: Object.keys(fileVariant.shape),
  file_path_lister: Object.keys(fileVariant.shape),
  queue_dead_letter_queue: ["arn", "max_receive_count"],
  output: Object.keys(outputSchema.shape),
};

/** The optional body of a redrive, which selects failed batches (docs/contract/jobs.md#redrive). */
export const redriveSchema = z.strictObject({
  error: z
    .string()
    .min(1, "must not be empty")
    .optional()
    .meta({ description: "only those whose error has this text" }),
  like: z
    .int("must be the index of a batch")
    .min(0, "must be the index of a batch")
    .optional()
    .meta({ description: "only those whose error differs from that of this batch in numbers only" }),
});
export type RedriveFilter = z.infer<typeof redriveSchema>;

/** docs/contract/jobs.md#job-moves */
export const JOB_STATUSES = [
  "status_unknown",
  "status_enqueuing",
  "status_running",
  "status_enqueue_failed",
  "status_completed_with_failures",
  "status_succeeded",
  "status_unexpected_error",
  "status_worker_error",
  "status_worker_oom",
  "status_timed_out",
  "status_stopped",
] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
/** Every batch is settled, and the whole output is written. */
export const COMPLETE_STATUSES: ReadonlySet<JobStatus> = new Set([
  "status_succeeded",
  "status_completed_with_failures",
]);

const jobReasonSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  evidence: z
    .strictObject({
      batch_id: z.string().optional(),
      batch_index: z.int().optional(),
      signal: z.string().optional(),
      exit_code: z.int().optional(),
      out_of_memory: z.enum(["limit", "kernel"]).optional(),
      peak_memory_bytes: z.int().optional(),
      memory_limit_bytes: z.int().optional(),
      last_lines: z.array(z.string()).optional().meta({ description: "the worker's last output" }),
    })
    .optional()
    .meta({ description: "about the worker that died, and the batch that it was running" }),
});
export type JobReason = z.infer<typeof jobReasonSchema>;

const count = z.int().min(0);
const workerCountsSchema = z.strictObject({
  pending: count,
  initializing: count,
  running: count,
  succeeded: count,
  failed: count,
  stalled: count,
});
export type WorkerCounts = z.infer<typeof workerCountsSchema>;

const jobOutputSchema = z
  .strictObject({
    path: z.string().meta({ description: "the address below which its objects are" }),
    batches: count.meta({ description: "the parts have all batches before this one" }),
    parts: count,
    rows: count,
    bytes: count,
    has_manifest: z.boolean().meta({ description: "whether the manifest of the current round is written" }),
  })
  .meta({ description: "what is in the store so far; not in lists" });
export type JobOutputProgress = z.infer<typeof jobOutputSchema>;

/** docs/contract/jobs.md#batch-metrics */
export const jobStatusSchema = z.strictObject({
  job_id: z.string(),
  api_name: z.string(),
  api_id: z.string(),
  workers: z.int().min(1),
  config: z.record(z.string(), z.unknown()),
  queue_url: z.string(),
  sqs_url: z.string().optional().meta({
    description:
      "the same as queue_url, if the submission used older names (s3_paths, sqs_dead_letter_queue)",
  }),
  timeout: z.int().min(1).optional(),
  queue_dead_letter_queue: deadLetterQueueSchema.optional(),
  on_failure: z
    .enum(["isolate"])
    .optional()
    .meta({ description: "batches that fail are split until their guilty items stand alone" }),
  priority: jobPriority.optional().meta({ description: "absent if it is 0" }),
  created_time: z.string(),
  status: z.enum(JOB_STATUSES),
  batches_in_queue: count,
  batch_metrics: z.strictObject({
    succeeded: count,
    failed: count.meta({ description: "failed attempts" }),
    avg_time_per_batch: z.number().min(0).optional().meta({ description: "seconds; of successful attempts" }),
  }),
  total_batch_count: count.optional(),
  worker_counts: workerCountsSchema.optional(),
  start_time: z.string().optional(),
  end_time: z.string().optional(),
  round: z
    .int()
    .min(2)
    .optional()
    .meta({ description: "the last round, of a job that was redriven or resumed" }),
  round_time: z.string().optional().meta({
    description:
      "when the last round began, of a job that was redriven or resumed; each pause of the round moves it on by its length",
  }),
  queued_time: z.string().optional().meta({
    description: "since when a job in progress waits for its first worker; absent once one was ready",
  }),
  paused_time: z.string().optional().meta({ description: "since when the job is paused" }),
  waiting: z.string().optional().meta({ description: "what a job in progress waits for, in a sentence" }),
  reason: jobReasonSchema.optional(),
  output: jobOutputSchema.optional(),
});
/** `config` is kept apart, as the submitter's text. */
export type JobStatusRecord = Omit<z.infer<typeof jobStatusSchema>, "config">;
