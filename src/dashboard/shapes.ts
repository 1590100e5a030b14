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
import type { JobStatus, JobStatusRecord } from "../contracts/jobs.ts";

export type { ApplicationState, DescribedApi, JobStatus, JobStatusRecord, ResourceState };
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

export interface ComputePart {
  total: number;
  free: number;
  machine?: number;
}

export interface OverviewApi {
  name: string;
  kind: "RealtimeAPI" | "BatchAPI" | "TrafficSplitter";
  api_id: string;
  status: string;
  message: string | null;
  ready_replicas: number;
  requested_replicas: number;
  paused_time: string | null;
  running_jobs: number | null;
  last_updated: string;
  requests_per_s: number;
  errors_per_s: number;
  latency_p50_s: number | null;
  latency_p99_s: number | null;
  in_flight: number;
  queue_depth: number;
  recent: number[];
}

export interface OverviewJob {
  job_id: string;
  api_name: string;
  status: JobStatus;
  created_time: string;
  total_batch_count: number | null;
  succeeded: number;
  failed: number;
  in_queue: number | null;
  workers: number;
  running_workers: number;
  batches_per_s: number | null;
  eta_s: number | null;
  waiting: string | null;
  paused_time: string | null;
}

export interface Attention {
  kind: "server" | "api" | "job" | "queue";
  name: string;
  job_id: string | null;
  severity: "error" | "warning";
  title: string;
  time: string | null;
}

export interface Overview {
  time: string;
  server: { version: string; started_time: string; status: "ok" | "degraded"; reasons: string[] };
  compute: { cpus: ComputePart; memory_bytes: ComputePart; gpus: ComputePart };
  apis: OverviewApi[];
  jobs: OverviewJob[];
  job_counts: Record<string, number>;
  attention: Attention[];
}

export type OverviewChanges = { time: string; apis_gone?: string[] } & Partial<Omit<Overview, "time">>;

export interface Session {
  scope: "admin" | "view" | null;
  name: string | null;
  expires_time: string | null;
}

export interface Series {
  step_s: number;
  times: number[];
  metrics: { metric: string; unit: string; values: (number | null)[] }[];
}

export interface Finding {
  cause: string;
  severity: "error" | "warning" | "info";
  title: string;
  evidence: string[];
  cure: string;
  command: string | null;
}

export interface Explanation {
  summary: string;
  findings: Finding[];
}

export interface JobPage {
  jobs: JobStatusRecord[];
  next_cursor: string | null;
  count: number;
}

export interface Selection {
  selection_id: string;
  count: number;
  expires_time: string;
}

export interface SelectionOutcome {
  changed: number;
  skipped: { id: string; reason: string }[];
  skipped_count: number;
}

export interface Version {
  api_id: string;
  deployed_time: string;
  is_current: boolean;
  spec: unknown;
  /** Null if the files are no longer those that were deployed. */
  files: { path: string; size: number; sha256: string }[] | null;
}
