/** The operations over all APIs and jobs: the overview, the list of all jobs, and actions on many of them at once. */
import * as z from "zod";
import { JOB_STATUSES } from "../jobs.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, SEARCH_LENGTH_MAX } from "../limits/responses.ts";
import { jobListSchema } from "./answers.ts";
import { CONTROL_ERRORS, type Operation, type Parameter, text } from "./operation.ts";
import { JOB_ID_PATTERN } from "./submission-description.ts";

const count = z.int().min(0);

const query = (name: string, about: string, schema: object): Parameter => ({
  ...{ name, in: "query", about, schema },
});

/** docs/contract/jobs.md#list-of-all-jobs */
const allJobsSchema = jobListSchema.extend({
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

export const OVERVIEW_OPERATIONS: readonly Operation[] = [
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
];
