/**
 * The operations that make a job go on, or not: redrive, resume, pause and unpause (docs/contract/jobs.md#redrive), and
 * the list of its rounds.
 */
import * as z from "zod";
import { JOB_STATUSES, redriveSchema } from "../jobs.ts";
import { jobEnvelopeSchema } from "./answers.ts";
import { api, JOB_ERRORS, job } from "./job-operations.ts";
import { jsonSchema, type Operation } from "./operation.ts";

const count = z.int().nullable();

const roundSchema = z.strictObject({
  round: z.int(),
  how: z
    .enum(["submitted", "redriven", "resumed"])
    .nullable()
    .meta({ description: "how it began; null: before a release that records it" }),
  by: z.string().nullable().meta({
    description:
      "the id of the key, or the subject of the token; null if none was needed, and for callers without the scope view",
  }),
  by_name: z.string().nullable().meta({ description: "the key's name at that time" }),
  selection: z.string().nullable().meta({ description: "which failed batches were redriven; null is all" }),
  begun_time: z.string(),
  ended_time: z.string().nullable().meta({ description: "null: it has not ended, or it is not known" }),
  status: z
    .enum(JOB_STATUSES)
    .nullable()
    .meta({ description: "how it ended, or the job's status now; null: not known" }),
  reason: z.string().nullable().meta({ description: "why it ended, if it did not succeed" }),
  batches: count.meta({ description: "how many it had to run; null while the job is being enqueued" }),
  succeeded: count.meta({ description: "how many of them succeeded" }),
  failed: count.meta({ description: "how many of them failed for good" }),
});
export const jobRoundsSchema = z.strictObject({
  rounds: z.array(roundSchema).meta({ description: "in their order: the first, and the last 200" }),
});
export type JobRoundsShown = z.infer<typeof jobRoundsSchema>;
export type RoundShown = JobRoundsShown["rounds"][number];

export const ROUND_OPERATIONS: readonly Operation[] = [
  {
    id: "listJobRounds",
    method: "get",
    path: "/{api}/{job}/rounds",
    about: "the rounds of a job: when each began, how and by whom, and what became of its batches",
    scope: "submit",
    isRead: true,
    parameters: [api, job],
    answers: { "application/json": jobRoundsSchema },
    errors: JOB_ERRORS,
  },
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
