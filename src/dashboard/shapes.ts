/** The shapes of the responses that the pages show. They are the server's own, by type only. */
import type * as z from "zod";
import type {
  ApplicationState,
  applicationListSchema,
  ResourceState,
} from "../contracts/config/applications.ts";
import type {
  DescribedApi,
  failureGroupsSchema,
  failureListSchema,
  jobEnvelopeSchema,
  keyListSchema,
  letterListSchema,
  queueListSchema,
} from "../contracts/http/answers.ts";
import type { Explanation, JobWorkersShown } from "../contracts/http/explain-operations.ts";
import type {
  Attention,
  allJobsSchema,
  changedSchema,
  OverviewApi,
  OverviewChanges,
  OverviewJob,
  OverviewShown,
  selectedSchema,
} from "../contracts/http/overview-operations.ts";
import type { JobRoundsShown } from "../contracts/http/round-operations.ts";
import type { Series } from "../contracts/http/series-operations.ts";
import type {
  ApiChanges,
  FileDiff,
  sessionSchema,
  VersionDiff,
  versionsSchema,
} from "../contracts/http/session-operations.ts";
import type { JobStatusRecord } from "../contracts/jobs.ts";

export type { ApplicationState, DescribedApi, JobStatusRecord, ResourceState };
export type ApplicationList = z.infer<typeof applicationListSchema>;
export type JobEnvelope = z.infer<typeof jobEnvelopeSchema>;
export type FailureGroups = z.infer<typeof failureGroupsSchema>;
export type FailureGroup = FailureGroups["groups"][number];
export type FailureList = z.infer<typeof failureListSchema>;
export type Failure = FailureList["failures"][number];
export type KeyList = z.infer<typeof keyListSchema>;

export type QueueList = z.infer<typeof queueListSchema>;
export type LetterList = z.infer<typeof letterListSchema>;
export type Letter = LetterList["messages"][number];
export type { Attention, Explanation, JobWorkersShown, OverviewApi, OverviewChanges, OverviewJob, Series };
export type Overview = OverviewShown;
export type ComputePart = Overview["compute"]["gpus"];
export type Session = z.infer<typeof sessionSchema>;
export type JobPage = z.infer<typeof allJobsSchema>;
export type Selection = z.infer<typeof selectedSchema>;
export type SelectionOutcome = z.infer<typeof changedSchema>;
export type ApiChange = ApiChanges["changes"][number];
export type { ApiChanges, FileDiff, JobRoundsShown, VersionDiff };
export type Version = z.infer<typeof versionsSchema>["versions"][number];
