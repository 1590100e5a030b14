/** The operations on jobs of a batch API (docs/contract/jobs.md). */
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../limits/responses.ts";
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../limits/submissions.ts";
import {
  failureGroupsSchema,
  failureListSchema,
  jobEnvelopeSchema,
  jobListSchema,
  jobRecordSchema,
  jobStatusNames,
  messageSchema,
  previewSchema,
} from "./answers.ts";
import { follow, LOGS, type Operation, type Parameter, text } from "./operation.ts";
import { JOB_ID_PATTERN, submissionDescription } from "./submission-description.ts";

const jobIdText = { type: "string", pattern: JOB_ID_PATTERN };
export const api: Parameter = { name: "api", in: "path", about: "the API's name", schema: text };
export const job: Parameter = { name: "job", in: "path", about: "the job's id", schema: jobIdText };
const jobId: Parameter = {
  name: "jobID",
  in: "query",
  about: "the job's id, instead of the path",
  schema: jobIdText,
};
const NEXT_PAGE = "next_cursor of the previous page";
const jobCursor: Parameter = { name: "cursor", in: "query", about: NEXT_PAGE, schema: jobIdText };
const failureCursor: Parameter = {
  name: "cursor",
  in: "query",
  about: NEXT_PAGE,
  schema: { type: "string", pattern: "^[0-9]{1,15}(\\.[0-9]{1,9})?$" },
};
const batchIndex = { type: "string", pattern: "^[0-9]{1,15}$" };
const firstBatch: Parameter = {
  name: "cursor",
  in: "query",
  about: "the first batch, by its index",
  schema: batchIndex,
};
const endBatch: Parameter = {
  name: "end",
  in: "query",
  about: "the batch before which the results end, by its index",
  schema: batchIndex,
};
const limit: Parameter = {
  name: "limit",
  in: "query",
  about: "at most this many",
  schema: { type: "integer", minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT },
};
const groupBy: Parameter = {
  name: "group_by",
  in: "query",
  about: "count them by error instead",
  schema: { type: "string", enum: ["error"] },
};
const like: Parameter = {
  name: "like",
  in: "query",
  about: "only those whose error differs from that of this batch in numbers only",
  schema: batchIndex,
};
const status: Parameter = {
  name: "status",
  in: "query",
  about: "only jobs in this status",
  schema: { type: "string", enum: jobStatusNames.options },
};
const dryRun: Parameter = {
  name: "dryRun",
  in: "query",
  about: "true, t or 1, in any case: check the submission and list its files; create no job",
  schema: text,
};
const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  about: "the same key and body within 24 hours return the first response again",
  schema: { type: "string", pattern: "^[!-~]+$", minLength: 1, maxLength: IDEMPOTENCY_KEY_LENGTH_MAX },
};

const API_ERRORS = ["api_not_found", "unauthorized", "forbidden", "api_not_ready"] as const;
export const JOB_ERRORS = [...API_ERRORS, "job_not_found", "invalid_request"] as const;
const SUBMIT_ERRORS = [
  ...API_ERRORS,
  "malformed_json",
  "invalid_request",
  "path_not_allowed",
  "no_files_found",
  "bucket_not_found",
  "store_forbidden",
  "store_unreachable",
  "idempotency_key_reused",
  "body_too_large",
  "origin_not_allowed",
  "queue_full",
] as const;

export const JOB_OPERATIONS: readonly Operation[] = [
  {
    id: "submitJob",
    method: "post",
    path: "/{api}",
    about: "submit a job",
    scope: "submit",
    parameters: [api, dryRun, idempotencyKey],
    body: { type: "application/json", schema: submissionDescription() },
    answers: { "application/json": jobRecordSchema.or(previewSchema), "text/plain": null },
    errors: SUBMIT_ERRORS,
  },
  {
    id: "listJobs",
    method: "get",
    path: "/{api}",
    about: "list jobs, newest first, without their config; or, with jobID, read one",
    scope: "submit",
    isRead: true,
    parameters: [api, jobId, limit, jobCursor, status],
    answers: { "application/json": jobListSchema.or(jobEnvelopeSchema) },
    errors: [...JOB_ERRORS, "job_id_required"],
  },
  {
    id: "stopJobByQuery",
    method: "delete",
    path: "/{api}",
    about: "stop the job of jobID",
    scope: "submit",
    parameters: [api, { ...jobId, required: true }],
    answers: { "application/json": messageSchema },
    errors: [...JOB_ERRORS, "job_id_required", "wrong_state", "disk_full", "origin_not_allowed"],
  },
  {
    id: "getJob",
    method: "get",
    path: "/{api}/{job}",
    about: "read a job",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "application/json": jobEnvelopeSchema },
    errors: JOB_ERRORS,
  },
  {
    id: "stopJob",
    method: "delete",
    path: "/{api}/{job}",
    about: "stop a job",
    scope: "submit",
    parameters: [api, job],
    answers: { "application/json": messageSchema },
    errors: [...JOB_ERRORS, "wrong_state", "disk_full", "origin_not_allowed"],
  },
  {
    id: "getJobFailures",
    method: "get",
    path: "/{api}/{job}/failures",
    about: "the batches that finally failed, with their errors and items",
    scope: "submit",
    isRead: true,
    parameters: [api, job, limit, failureCursor, groupBy, like],
    answers: { "application/json": failureListSchema.or(failureGroupsSchema), "application/x-ndjson": null },
    errors: JOB_ERRORS,
  },
  {
    id: "getJobResults",
    method: "get",
    path: "/{api}/{job}/results",
    about: "the predictions of a job with an output, as JSON lines in the order of batches",
    scope: "submit",
    isRead: true,
    parameters: [api, job, firstBatch, endBatch, follow],
    answers: { "application/x-ndjson": null },
    errors: [...JOB_ERRORS, "no_output"],
  },
  {
    id: "verifyJobOutput",
    method: "post",
    path: "/{api}/{job}/verify",
    about:
      "read the output again, and compare it with its manifest: a line for each part, the last for the whole",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "application/x-ndjson": null },
    errors: [...JOB_ERRORS, "no_output", "wrong_state", "store_forbidden", "store_unreachable"],
  },
  {
    id: "getJobEvents",
    method: "get",
    path: "/{api}/{job}/events",
    about: "the status, without its config, on each change and once a second, as server-sent events",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "text/event-stream": null },
    errors: JOB_ERRORS,
  },
  {
    id: "getJobLogs",
    method: "get",
    path: "/{api}/{job}/logs",
    about: "the log of a job: server, install, every worker",
    scope: "submit",
    isRead: true,
    parameters: [api, job, follow],
    answers: LOGS,
    errors: JOB_ERRORS,
  },
];
