/** The views of declarative applications: what the control plane returns about them. */
import * as z from "zod";
import { API_STATUSES } from "./api-statuses.ts";

/** The kinds of resources that have a status. */
export const NODE_KINDS = [
  "raw_column",
  "aggregate",
  "transformed_column",
  "training_dataset",
  "model",
  "api",
] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

export const RESOURCE_STATUSES = [
  "pending",
  "ingesting",
  "aggregating",
  "transforming",
  "generating",
  "training",
  "ready",
  "error",
  "skipped",
  "terminated",
  "upstream error",
  "upstream termination",
  "compute unavailable",
  "updating",
  "update pending",
  "update skipped",
] as const;
export type ResourceStatus = (typeof RESOURCE_STATUSES)[number];

const time = z.string().meta({ description: "UTC" });

const resourceSchema = z.strictObject({
  kind: z.enum(NODE_KINDS),
  name: z.string(),
  resource_id: z
    .string()
    .meta({ description: "the same as before if nothing that it depends on has changed" }),
  status: z.enum(RESOURCE_STATUSES),
  started_time: time.optional().meta({ description: "when its computation began" }),
  ended_time: time.optional(),
  reason: z.string().optional().meta({ description: "why it failed" }),
  value: z.unknown().optional().meta({ description: "value of an aggregate" }),
  metrics: z
    .record(z.string(), z.number())
    .optional()
    .meta({ description: "results of a model's evaluation" }),
  left_out: z
    .string()
    .optional()
    .meta({ description: "why its value or metrics are not shown, and where the whole is" }),
  api: z
    .strictObject({
      name: z.string().meta({ description: "the real-time API that serves it" }),
      endpoint: z.string(),
      is_current: z.boolean().meta({ description: "it serves the newest model" }),
      status: z.enum(API_STATUSES),
      message: z.string().optional(),
      up_to_date_replicas: z.int().min(0),
      requested_replicas: z.int().min(0),
      last_updated: time,
    })
    .optional(),
  sample: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: "fields of an API's sample, with their types" }),
  config: z.record(z.string(), z.unknown()),
});
export type ResourceState = z.infer<typeof resourceSchema>;
export type ServedApi = NonNullable<ResourceState["api"]>;

export const applicationSchema = z.strictObject({
  name: z.string(),
  environment: z.string(),
  data_version: time.meta({ description: "when the data was read; each refresh changes it" }),
  deployed_time: time,
  is_working: z.boolean().meta({ description: "whether anything is being computed, or will be next" }),
  resources: z.array(resourceSchema),
});
export type ApplicationState = z.infer<typeof applicationSchema>;

export const applicationListSchema = z.strictObject({ applications: z.array(applicationSchema) });
