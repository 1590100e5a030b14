/** The operation on series: what happened per minute or hour (docs/contract/operations.md#series). */
import * as z from "zod";
import { SERIES_POINTS_MAX } from "../limits/database.ts";
import { CONTROL_ERRORS, type Operation, text } from "./operation.ts";

/** Each metric with its unit and what it says. */
export const SERIES_METRICS = {
  requests: ["1/s", "responses with status 2xx, 4xx or 5xx"],
  errors: ["1/s", "responses with status 5xx"],
  rejected: ["1/s", "requests that the gateway itself refused, such as with 401, 429 or 503"],
  latency_p50: ["s", "half of the requests took at most this long"],
  latency_p95: ["s", "95 % of the requests took at most this long"],
  latency_p99: ["s", "99 % of the requests took at most this long"],
  wait_p95: ["s", "95 % of the requests waited at most this long for a replica"],
  replicas: ["count", "replicas that serve, at the end of the step"],
  in_flight: ["count", "the most requests that waited or ran at once"],
  queue_depth: ["count", "the most requests that waited for a replica at once"],
  batches: ["1/s", "batches that succeeded"],
  failed_batches: ["1/s", "failed attempts of batches"],
  cpus_reserved: ["count", "the most CPUs that were reserved at once, of the whole server"],
} as const satisfies Record<string, readonly ["1/s" | "s" | "count", string]>;
export type SeriesMetric = keyof typeof SERIES_METRICS;
const NAMES = Object.keys(SERIES_METRICS) as SeriesMetric[];

/** The steps that a caller may choose, in seconds. */
export const SERIES_STEPS_S = [
  60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
] as const;

const seriesValuesSchema = z.strictObject({
  metric: z.enum(NAMES),
  unit: z.enum(["1/s", "s", "count"]),
  values: z.array(z.number().nullable()).meta({
    description: "one for each of times; null if nothing is known, or there was nothing to measure",
  }),
  total: z
    .int()
    .nullable()
    .meta({ description: "of metrics that count: their exact number in all steps together; else null" }),
});
export type SeriesValues = z.infer<typeof seriesValuesSchema>;

export const seriesSchema = z.strictObject({
  api: z.string().nullable(),
  job_id: z.string().nullable(),
  step_s: z.int(),
  times: z.array(z.int()).meta({ description: "the start of each step, in Unix seconds" }),
  metrics: z.array(seriesValuesSchema),
});
export type Series = z.infer<typeof seriesSchema>;

const MOMENT = "a timestamp such as 2026-11-24T08:00:00Z, Unix seconds, or a duration before now such as 24h";

export const SERIES_OPERATIONS: readonly Operation[] = [
  {
    id: "getSeries",
    method: "get",
    path: "/-/series",
    about:
      "what happened in each minute of the last day, or hour of the last two weeks: of an API, a job, or all APIs together",
    scope: "view",
    parameters: [
      {
        name: "metric",
        in: "query",
        about: "may be repeated; without it, all metrics of the API, the job or the server",
        schema: { type: "string", enum: NAMES },
      },
      { name: "api", in: "query", about: "an API", schema: text },
      { name: "job", in: "query", about: "a job's id", schema: text },
      { name: "from", in: "query", about: `${MOMENT}; an hour before \`to\` by default`, schema: text },
      { name: "to", in: "query", about: `${MOMENT}; now by default`, schema: text },
      {
        name: "step",
        in: "query",
        about: `seconds; at most ${SERIES_POINTS_MAX} steps fit between from and to. By default it fits the range`,
        schema: { type: "integer", enum: [...SERIES_STEPS_S] },
      },
    ],
    answers: { "application/json": seriesSchema },
    errors: [...CONTROL_ERRORS, "invalid_request", "api_not_found", "job_not_found"],
  },
];
