/**
 * The API configuration (docs/contract/configuration.md). The schema knows every legal field. `NOT_YET` lists those
 * that are legal but refused for now, because silently ignoring a field would mislead its user.
 */
import * as z from "zod";
import {
  CONFIG_TEXT_LENGTH_MAX,
  CPU_MILLIS_MAX,
  DURATION_MS_MAX,
  ENV_BYTES_MAX,
  ENV_VARIABLES_MAX,
  MEMORY_BYTES_MAX,
  ORIGINS_MAX,
  REPLICAS_MAX,
  SPLIT_APIS_MAX,
  THREADS_MAX,
} from "../limits/configuration.ts";
import { parseBytes, parseCpuMillis } from "./quantities.ts";

/** As in Cortex: a Python does not start with less. */
const MEMORY_LEAST = 20 * 1024 * 1024;

const DURATION_UNITS_MS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/**
 * Converts a duration in Go's style (`500ms`, `1m30s`) to whole milliseconds, the unit of all code behind this
 * function. A duration above 0 becomes at least 1. Undefined if the text is no duration.
 */
export function parseDurationMs(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * DURATION_UNITS_MS[unit!]!;
  }
  const whole = total > 0 ? Math.max(1, Math.round(total)) : 0;
  return Number.isSafeInteger(whole) ? whole : undefined;
}

const DURATION_RULE = "must be a duration such as 500ms, 30s or 1m30s";
const isShort = (text: string) => (parseDurationMs(text) ?? 0) <= DURATION_MS_MAX;
const SHORT_RULE = `must be at most ${DURATION_MS_MAX / 3_600_000}h`;
const duration = z
  .string(DURATION_RULE)
  .refine((text) => (parseDurationMs(text) ?? 0) > 0, DURATION_RULE)
  .refine(isShort, SHORT_RULE);
/** The maximum of both quantities, for messages. */
export const QUANTITY_MAX_TEXT = "100000 CPUs, 1024Ti";
const quantity = (
  parse: (text: string) => number | undefined,
  { least, most }: { least: number; most: number },
  rule: string,
) =>
  z
    .union([z.string(), z.number()], rule)
    .refine((value) => (parse(String(value)) ?? 0) >= least, rule)
    .refine((value) => (parse(String(value)) ?? 0) <= most, `must be at most ${QUANTITY_MAX_TEXT}`)
    .transform(String);
/** A path, an address or a key. Its length is limited because it goes into requests, file names and messages. */
const shortText = z
  .string()
  .max(CONFIG_TEXT_LENGTH_MAX, `must have at most ${CONFIG_TEXT_LENGTH_MAX} characters`);
const countFrom = (least: number) =>
  z.int("must be an integer").min(least, `must be an integer of at least ${least}`);
/** A stabilization period, which may be left out. */
const durationOrNone = z
  .string(DURATION_RULE)
  .refine((text) => parseDurationMs(text) !== undefined, DURATION_RULE)
  .refine(isShort, SHORT_RULE);
const replicasFrom = (least: number) => countFrom(least).max(REPLICAS_MAX, `must be at most ${REPLICAS_MAX}`);
const fraction = z.number().min(0, "must be at least 0").lt(1, "must be below 1");
const percentOrCount = z.union(
  [
    z.int().min(0, "must be at least 0").max(REPLICAS_MAX, `must be at most ${REPLICAS_MAX}`),
    z.string().regex(/^\d{1,4}%$/, "must be a count or a percentage such as 25%"),
  ],
  `must be a count of at most ${REPLICAS_MAX} or a percentage such as 25%`,
);

/** A leading slash is added and a trailing slash is removed, as in Cortex. */
const endpoint = shortText
  .transform((text) => `/${text.replace(/^\/+/, "").replace(/\/+$/, "")}`)
  .refine(
    (path) => /^(\/[\w.~-]+)+$/.test(path) && !path.startsWith("/-") && !/\/\.\.?(\/|$)/.test(path),
    "must be a path such as /models/iris, of letters, digits, -, _, . and ~, that does not begin with /-",
  );

function isSmallEnv(env: Record<string, string>): boolean {
  const entries = Object.entries(env);
  const bytes = entries.reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
  return entries.length <= ENV_VARIABLES_MAX && bytes <= ENV_BYTES_MAX;
}

const PYTHON_RULE = 'must be a version of Python of two numbers, such as "3.11"';
const UNQUOTED_PYTHON_RULE = `must be in quotes, such as python: "3.11", because YAML reads 3.10 as 3.1`;

const predictorSchema = z.strictObject({
  type: z.literal("python", 'must be "python"').default("python"),
  path: shortText.min(1),
  config: z.record(z.string(), z.unknown(), "must be a map").nullish(),
  env: z
    .record(z.string(), z.string("must be a string; put the value in quotes"))
    .refine(
      (env) => Object.keys(env).every((key) => !key.startsWith("QUERN_")),
      "names beginning with QUERN_ are reserved",
    )
    .refine(
      isSmallEnv,
      `must have at most ${ENV_VARIABLES_MAX} variables, of ${ENV_BYTES_MAX} bytes together`,
    )
    .default({}),
  /** A version; by default the server's own Python. deploy.ts checks whether this machine has it. */
  python: z
    .string({ error: ({ input }) => (typeof input === "number" ? UNQUOTED_PYTHON_RULE : PYTHON_RULE) })
    .regex(/^\d{1,2}\.\d{1,3}$/, PYTHON_RULE)
    .optional(),
  python_path: shortText.optional(),
  processes_per_replica: countFrom(1).max(100, "must be at most 100").default(1),
  threads_per_process: countFrom(1).max(THREADS_MAX, `must be at most ${THREADS_MAX}`).default(1),
  server_side_batching: z
    .strictObject({ max_batch_size: z.int().min(2).max(1024), batch_interval: duration })
    .optional(),
  timeout: duration.optional(),
  expose_errors: z.boolean().default(false),
  /**
   * Whether `headers` and `query_params` include the caller's credentials. It has no default: a default would change
   * the ids of older versions.
   */
  pass_credentials: z.boolean().optional(),
  /** How a `str` is sent. It has no default, for the same reason. */
  response: z.enum(["json", "text"], 'must be "json" or "text"').optional(),
});

const apiName = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,41}$/,
    "must begin with a lower-case letter and have only a-z, 0-9 and -, at most 42 characters",
  );

const splitApiSchema = z.strictObject({
  name: apiName,
  weight: z.int("must be an integer").min(0, "must be from 0 to 100").max(100, "must be from 0 to 100"),
  /**
   * A shadow gets copies of `weight` percent of the requests; its responses are dropped
   * (docs/contract/configuration.md#shadow).
   */
  shadow: z.boolean().default(false),
});
export type SplitApi = z.infer<typeof splitApiSchema>;

/** `*`, or the value that a browser sends as Origin. */
const origin = z
  .string()
  .regex(/^(\*|https?:\/\/[^/\s]+)$/, 'must be "*" or an origin such as https://example.com, without a path');

export const apiSchema = z.strictObject({
  name: apiName,
  kind: z
    .enum(["RealtimeAPI", "BatchAPI", "TrafficSplitter"], "must be RealtimeAPI, BatchAPI or TrafficSplitter")
    .default("RealtimeAPI"),
  predictor: predictorSchema.optional(),
  monitoring: z
    .strictObject({
      model_type: z.enum(["classification", "regression"]).optional(),
      key: shortText.optional(),
    })
    .optional(),
  compute: z
    .strictObject({
      cpu: quantity(
        parseCpuMillis,
        { least: 20, most: CPU_MILLIS_MAX },
        "must be a number of CPUs such as 0.5 or 500m, at least 20m",
      ).default("200m"),
      mem: quantity(
        parseBytes,
        { least: MEMORY_LEAST, most: MEMORY_BYTES_MAX },
        "must be a size such as 100M or 1Gi, at least 20Mi",
      ).optional(),
      gpu: countFrom(0).default(0),
    })
    .default({ cpu: "200m", gpu: 0 }),
  networking: z
    .strictObject({
      endpoint: endpoint.optional(),
      api_gateway: z.enum(["public", "none"]).optional(),
      auth: z.enum(["key", "none"]).optional(),
      /**
       * Web pages that may request predictions and read them. gateway/door/cors.ts has the rule for APIs without this
       * list.
       */
      cors_origins: z
        .array(origin, "must be a list of origins")
        .max(ORIGINS_MAX, `must have at most ${ORIGINS_MAX} origins`)
        .optional(),
    })
    .optional(),
  autoscaling: z
    .strictObject({
      min_replicas: replicasFrom(0).default(1),
      max_replicas: replicasFrom(1).optional(),
      init_replicas: replicasFrom(0).optional(),
      max_replica_concurrency: countFrom(1).max(30_000, "must be at most 30000").optional(),
      target_replica_concurrency: z.number().positive("must be above 0").optional(),
      window: duration.refine((text) => parseDurationMs(text)! >= 1_000, "must be at least 1s").optional(),
      downscale_stabilization_period: durationOrNone.optional(),
      upscale_stabilization_period: durationOrNone.optional(),
      max_downscale_factor: fraction.optional(),
      max_upscale_factor: z.number().gt(1, "must be above 1").optional(),
      downscale_tolerance: fraction.optional(),
      upscale_tolerance: z.number().min(0, "must be at least 0").optional(),
    })
    .default({ min_replicas: 1 }),
  update_strategy: z
    .strictObject({ max_surge: percentOrCount.optional(), max_unavailable: percentOrCount.optional() })
    .optional(),
  apis: z
    .array(splitApiSchema, "must be a list of {name, weight}")
    .min(1, "must have at least one API")
    .max(SPLIT_APIS_MAX, `must have at most ${SPLIT_APIS_MAX} APIs`)
    .optional(),
  output: z.strictObject({ store_path: z.string() }).optional(),
});
export type ApiConfig = z.infer<typeof apiSchema>;

/** docs/contract/command-line.md#api-statuses: an API that is scaled to zero is `live`. */
export const API_STATUSES = [
  "live",
  "updating",
  "error",
  "error (out of memory)",
  "compute unavailable",
] as const;
export type ApiStatus = (typeof API_STATUSES)[number];

/** Legal fields that this release refuses, each with what to do instead. */
export const NOT_YET: readonly { path: readonly string[]; cure: string }[] = [
  { path: ["output"], cure: "write results in predict()" },
];

/** Fields that only some kinds of API have. Other kinds would silently ignore them, so they are refused there. */
export const OF_KINDS: readonly { path: readonly string[]; kinds: readonly ApiConfig["kind"][] }[] = [
  { path: ["predictor"], kinds: ["RealtimeAPI", "BatchAPI"] },
  { path: ["compute"], kinds: ["RealtimeAPI", "BatchAPI"] },
  { path: ["apis"], kinds: ["TrafficSplitter"] },
  { path: ["autoscaling"], kinds: ["RealtimeAPI"] },
  { path: ["monitoring"], kinds: ["RealtimeAPI"] },
  { path: ["update_strategy"], kinds: ["RealtimeAPI"] },
  { path: ["predictor", "server_side_batching"], kinds: ["RealtimeAPI"] },
  { path: ["predictor", "response"], kinds: ["RealtimeAPI"] },
  { path: ["networking", "cors_origins"], kinds: ["RealtimeAPI", "TrafficSplitter"] },
  { path: ["output"], kinds: ["BatchAPI"] },
];
