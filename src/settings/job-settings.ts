/** The server's settings for jobs: their priority, and how long their data is kept. */
import { JOB_PRIORITY_MAX } from "../contracts/limits/jobs.ts";
import { bytes, days, integer, optional } from "./setting-values.ts";

export const JOB_SETTINGS = {
  submitPriorityMax: {
    env: "QUERN_SUBMIT_PRIORITY_MAX",
    option: "--submit-priority-max <number>",
    default: String(JOB_PRIORITY_MAX),
    unit: "priority",
    help: "highest priority of jobs that are submitted, redriven or resumed without an admin key",
    parse: integer(
      -JOB_PRIORITY_MAX,
      JOB_PRIORITY_MAX,
      `a number from -${JOB_PRIORITY_MAX} to ${JOB_PRIORITY_MAX}`,
    ),
  },
  keepJobs: {
    env: "QUERN_KEEP_JOBS",
    option: "--keep-jobs <days>",
    default: "14",
    unit: "days",
    help: "how long to keep batches, files and logs of jobs that succeeded; their records stay (--keep-records)",
    parse: days,
  },
  keepFailedJobs: {
    env: "QUERN_KEEP_FAILED_JOBS",
    option: "--keep-failed-jobs <days>",
    default: "60",
    unit: "days",
    help: "how long to keep batches, files, logs and failures of all other jobs, and messages in queues of Quern's own",
    parse: days,
  },
  keepRecords: {
    env: "QUERN_KEEP_RECORDS",
    option: "--keep-records <days>",
    default: "",
    unit: "days",
    help: "how long to keep the records of ended jobs, at least as long as their data; the default is for ever",
    parse: optional(days),
  },
  keepLogs: {
    env: "QUERN_KEEP_LOGS",
    option: "--keep-logs <size>",
    default: "1Gi",
    unit: "size",
    help: "largest size of the logs of the jobs of one API together; beyond it the oldest ended jobs lose theirs",
    parse: bytes,
  },
} as const;
