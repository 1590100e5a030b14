/** The operations that make a job go on, or not: redrive, resume, pause and unpause (docs/contract/jobs.md#redrive). */
import { redriveSchema } from "../jobs.ts";
import { jobEnvelopeSchema } from "./answers.ts";
import { api, JOB_ERRORS, job } from "./job-operations.ts";
import { jsonSchema, type Operation } from "./operation.ts";

export const ROUND_OPERATIONS: readonly Operation[] = [
  {
    id: "redriveJob",
    method: "post",
    path: "/{api}/{job}/redrive",
    about: "run the failed batches again, in a new round of the job, or those that the body selects",
    scope: "submit",
    parameters: [api, job],
    body: { type: "application/json", schema: jsonSchema(redriveSchema, "input"), isOptional: true },
    answers: { "application/json": jobEnvelopeSchema },
    errors: [
      ...JOB_ERRORS,
      "wrong_state",
      "malformed_json",
      "body_too_large",
      "origin_not_allowed",
      "queue_full",
    ],
  },
  {
    id: "resumeJob",
    method: "post",
    path: "/{api}/{job}/resume",
    about: "resume a job that ended before all its batches were settled, in a new round",
    scope: "submit",
    parameters: [api, job],
    answers: { "application/json": jobEnvelopeSchema },
    errors: [...JOB_ERRORS, "wrong_state", "origin_not_allowed", "queue_full"],
  },
  {
    id: "pauseJob",
    method: "post",
    path: "/{api}/{job}/pause",
    about: "begin no new batch of a job; those in hand end. It survives restarts",
    scope: "submit",
    parameters: [api, job],
    answers: { "application/json": jobEnvelopeSchema },
    errors: [...JOB_ERRORS, "wrong_state", "origin_not_allowed"],
  },
  {
    id: "unpauseJob",
    method: "post",
    path: "/{api}/{job}/unpause",
    about: "continue a paused job. The paused time does not count towards its timeout",
    scope: "submit",
    parameters: [api, job],
    answers: { "application/json": jobEnvelopeSchema },
    errors: [...JOB_ERRORS, "wrong_state", "origin_not_allowed"],
  },
];
