/** The API configuration (docs/contract/configuration.md). The schema knows every legal field. */
import * as z from "zod";
import { outputSchema } from "../jobs.ts";
import { CPU_MILLIS_MAX, MEMORY_BYTES_MAX, ORIGINS_MAX, SPLIT_APIS_MAX } from "../limits/configuration.ts";
import { parseDurationMs } from "./durations.ts";
import { placementShape } from "./placement.ts";
import { predictorSchema } from "./predictor.ts";
import { parseBytes, parseCpuMillis } from "./quantities.ts";
import {
  apiName,
  countFrom,
  duration,
  durationOrNone,
  endpoint,
  fraction,
  origin,
  percentOrCount,
  quantity,
  replicasFrom,
  shortText,
} from "./scalars.ts";

/** As in Cortex: a Python does not start with less. */
const MEMORY_LEAST = 20 * 1024 * 1024;

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
      // They have no default: a default would change the ids of older versions.
      ...placementShape,
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
  output: outputSchema.optional(),
});
export type ApiConfig = z.infer<typeof apiSchema>;

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
  { path: ["compute", "queue"], kinds: ["BatchAPI"] },
  { path: ["output"], kinds: ["BatchAPI"] },
];
