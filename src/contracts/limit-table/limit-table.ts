/**
 * The largest request of each kind, and the error beyond it: the table of docs/reference/limits.md. The numbers are
 * those that the checks use.
 */
import { QUANTITY_MAX_TEXT } from "../config/scalars.ts";
import * as configuration from "../limits/configuration.ts";
import * as eventLoop from "../limits/event-loop.ts";
import * as inputFiles from "../limits/input-files.ts";
import * as jobs from "../limits/jobs.ts";
import * as projects from "../limits/projects.ts";
import * as responses from "../limits/responses.ts";
import * as submissions from "../limits/submissions.ts";
import { bytes, invalid, type LimitGroup, type LimitRow, unavailable, undeployed } from "./limit-row.ts";
import { REQUESTS } from "./request-limits.ts";

const SUBMISSIONS: readonly LimitRow[] = [
  unavailable(
    "jobs that have not ended, of all APIs; an API may have twice as many as stay free",
    String(jobs.JOBS_UNFINISHED_MAX),
  ),
  unavailable(
    "submissions and dry runs of a key that wait until their files are looked for",
    String(submissions.CHECKS_WAITING_OF_A_SENDER_MAX),
  ),
  { what: "body", most: bytes(submissions.SUBMISSION_BYTES_LIMIT - 1), error: "body_too_large", status: 413 },
  unavailable(
    `bodies of more than ${bytes(eventLoop.READ_HERE_BYTES_MAX)} of a key that wait to be read`,
    `${eventLoop.ASIDE_WAITING_OF_A_SENDER_MAX}, and ${bytes(eventLoop.ASIDE_WAITING_BYTES_MAX / 2)}`,
  ),
  invalid("nested arrays and objects, anywhere in the body", String(submissions.BODY_DEPTH_MAX)),
  invalid("`config`, as compact JSON", bytes(configuration.CONFIG_BYTES_MAX)),
  invalid("nested arrays and objects in `config`", String(configuration.CONFIG_DEPTH_MAX)),
  invalid("nested arrays and objects in an item", String(submissions.ITEM_DEPTH_MAX)),
  invalid("characters of a number", String(submissions.NUMBER_CHARACTERS_MAX), "malformed_json"),
  invalid("a batch, as compact JSON", bytes(submissions.BATCH_BYTES_LIMIT - 1)),
  invalid(
    "`workers`, `timeout`, `batch_size`, `max_receive_count`",
    `${Number.MAX_SAFE_INTEGER}; workers that do not fit on the machine wait`,
  ),
  invalid(
    "`priority` of a job",
    `-${jobs.JOB_PRIORITY_MAX} to ${jobs.JOB_PRIORITY_MAX}; without an admin key at most \`--submit-priority-max\``,
  ),
  invalid("`batch_size` with `on_failure: isolate`", String(jobs.SPLIT_ITEMS_MAX)),
  invalid("elements of `store_paths`", String(submissions.STORE_PATHS_MAX)),
  invalid("characters of `store_paths` together", String(submissions.STORE_PATHS_CHARACTERS_MAX)),
  invalid("patterns of `includes`, of `excludes`", String(submissions.GLOBS_MAX)),
  invalid("characters of the patterns of a list together", String(submissions.GLOB_CHARACTERS_MAX)),
  invalid("unknown keys of an object", String(submissions.SUBMISSION_KEYS_MAX)),
  invalid("a submission without its items", bytes(submissions.SUBMISSION_HEAD_BYTES_MAX)),
  invalid("one path", bytes(submissions.PATH_BYTES_MAX)),
  invalid("path of an output, after `file://`", bytes(submissions.OUTPUT_FILE_BYTES_MAX)),
  invalid("path of an output, after its bucket", bytes(submissions.OUTPUT_KEY_BYTES_MAX)),
  invalid("one pattern of `includes` or `excludes`", `${submissions.GLOB_LENGTH_MAX} characters`),
  invalid("name or ARN of a dead letter queue", `${submissions.QUEUE_NAME_LENGTH_MAX} characters`),
  invalid("region of a queue of SQS", `${submissions.SQS_REGION_LENGTH_MAX} characters`),
  {
    what: "errors of failed batches that a job keeps whole, together",
    most: bytes(jobs.ERRORS_WHOLE_BYTES_MAX),
    error: undefined,
    status: undefined,
    effect: `messages are cut to ${jobs.ERROR_CUT_LENGTH} characters, and tracebacks are left out`,
  },
];

const CONFIGURATIONS: readonly LimitRow[] = [
  {
    what: "project, unpacked",
    most: bytes(projects.PROJECT_BYTES_LIMIT),
    error: "invalid_project",
    status: 400,
  },
  undeployed("the configuration's file", bytes(configuration.CONFIG_FILE_BYTES_MAX)),
  undeployed("APIs of a file", String(configuration.APIS_MAX)),
  undeployed("`predictor.config`, as compact JSON", bytes(configuration.CONFIG_BYTES_MAX)),
  undeployed("nested lists and maps, anywhere", String(configuration.CONFIG_DEPTH_MAX)),
  undeployed("variables of `predictor.env`", String(configuration.ENV_VARIABLES_MAX)),
  undeployed("`predictor.env`, names and values together", bytes(configuration.ENV_BYTES_MAX)),
  undeployed("a path, or `networking.endpoint`", `${configuration.CONFIG_TEXT_LENGTH_MAX} characters`),
  undeployed("`networking.cors_origins`", String(configuration.ORIGINS_MAX)),
  undeployed("APIs of a TrafficSplitter", String(configuration.SPLIT_APIS_MAX)),
  undeployed("names of an application's resources", `${configuration.RESOURCE_NAME_LENGTH_MAX} characters`),
  undeployed("durations", `${configuration.DURATION_MS_MAX / 3_600_000}h`),
  undeployed("replicas", String(configuration.REPLICAS_MAX)),
  undeployed("`threads_per_process`", String(configuration.THREADS_MAX)),
  undeployed("`compute.cpu`, `compute.mem`", QUANTITY_MAX_TEXT),
];

const failed = (what: string, most: string): LimitRow => ({
  what,
  most,
  error: undefined,
  status: undefined,
  effect: "the data's resources fail, and say why",
});

const APPLICATIONS: readonly LimitRow[] = [
  failed("files of an application's data in a store", String(inputFiles.DATA_FILES_MAX)),
  failed(
    "all of them together",
    `${bytes(inputFiles.DATA_BYTES_MAX)}, and ${inputFiles.DATA_DISK_SHARE * 100} % of the free disk`,
  ),
  failed("pages of the listing that finds them", String(inputFiles.DATA_PAGES_MAX)),
  {
    what: "the value of an aggregate, or the metrics of a model, as a response shows them",
    most: `${bytes(responses.RESULT_SHOWN_BYTES_MAX)}, and ${bytes(responses.VALUES_SHOWN_BYTES_MAX)} of all values`,
    error: undefined,
    status: undefined,
    effect: "it is left out, and `left_out` says where the whole is",
  },
];

export const LIMITS: readonly LimitGroup[] = [
  { title: "Requests", rows: REQUESTS },
  { title: "Submissions of jobs", rows: SUBMISSIONS },
  { title: "Configurations of APIs", rows: CONFIGURATIONS },
  { title: "Applications", rows: APPLICATIONS },
];
