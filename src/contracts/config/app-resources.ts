/**
 * The resources of a legacy declarative application (docs/contract/applications.md#application-kinds): the rules of
 * each resource alone. legacy/check/check-app.ts checks the rules between resources.
 */
import * as z from "zod";
import { CPU_MILLIS_MAX, MEMORY_BYTES_MAX, REPLICAS_MAX } from "../limits/configuration.ts";
import { csvData, parquetData } from "./app-data.ts";
import { positive, resourceName } from "./app-values.ts";
import { parseBytes, parseCpuMillis } from "./quantities.ts";

/** Names that become part of an address: RFC 1035 labels. */
const addressName = z
  .string()
  .regex(
    /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "must begin with a lower-case letter and have only a-z, 0-9 and -",
  );
const quantity = (parse: (text: string) => number | undefined, most: number, rule: string) =>
  z
    .union([z.string(), z.number()], rule)
    .refine((value) => parse(String(value)) !== undefined, rule)
    .refine((value) => (parse(String(value)) ?? 0) <= most, "is more than any machine has")
    .transform(String);
const tags = z.record(z.string(), z.unknown()).default({});
const workerCompute = z
  .strictObject({
    cpu: quantity(parseCpuMillis, CPU_MILLIS_MAX, "must be a number of CPUs such as 0.5 or 500m").nullish(),
    mem: quantity(parseBytes, MEMORY_BYTES_MAX, "must be a size such as 100M or 1Gi").nullish(),
    gpu: z.int().min(0, "must be at least 0").nullish(),
  })
  .default({});
/** The original engine took numbers of executors here. They are still accepted, and have no effect. */
const dataCompute = z.record(z.string(), z.unknown()).optional();

export const COLUMN_TYPES = [
  ...["INT_COLUMN", "FLOAT_COLUMN", "STRING_COLUMN"],
  ...["INT_LIST_COLUMN", "FLOAT_LIST_COLUMN", "STRING_LIST_COLUMN"],
] as const;
const rawColumnType = z.enum(
  ["INT_COLUMN", "FLOAT_COLUMN", "STRING_COLUMN"],
  "must be INT_COLUMN, FLOAT_COLUMN or STRING_COLUMN",
);

/** Columns and args that an implementation declares: names with their types. */
const declaredInputs = z
  .strictObject({
    columns: z.record(z.string(), z.union([z.string(), z.array(z.string()).length(1)])).default({}),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .default({ columns: {}, args: {} });
/** The values for the declared inputs: names of columns, and names or literals for args. */
const givenInputs = z
  .strictObject({
    columns: z
      .record(
        z.string(),
        z.union([z.string(), z.array(z.string())], "must be a column's name or a list of names"),
      )
      .default({}),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .default({ columns: {}, args: {} });

const training = z.strictObject({
  batch_size: positive.default(40),
  num_steps: positive.optional(),
  num_epochs: positive.optional(),
  shuffle: z.boolean().default(true),
  tf_random_seed: z.int().default(1788),
  tf_randomize_seed: z.boolean().default(false),
  save_summary_steps: positive.default(100),
  save_checkpoints_secs: positive.optional(),
  save_checkpoints_steps: positive.optional(),
  log_step_count_steps: positive.default(100),
  keep_checkpoint_max: positive.default(3),
  keep_checkpoint_every_n_hours: positive.default(10_000),
});
const evaluation = z.strictObject({
  batch_size: positive.default(40),
  num_steps: positive.optional(),
  num_epochs: positive.optional(),
  shuffle: z.boolean().default(false),
  start_delay_secs: z.number().min(0).default(120),
  throttle_secs: z.number().min(0).default(600),
});

export const RESOURCE_SCHEMAS = {
  app: z.strictObject({ kind: z.literal("app"), name: addressName }),
  environment: z.strictObject({
    kind: z.literal("environment"),
    name: resourceName,
    log_level: z
      .strictObject({ tensorflow: z.string().default("INFO"), spark: z.string().default("WARN") })
      .optional(),
    limit: z
      .strictObject({
        num_rows: positive.optional(),
        fraction_of_rows: z.number().gt(0, "must be above 0").lte(1, "must be at most 1").optional(),
        randomize: z.boolean().default(false),
        random_seed: z.int().optional(),
      })
      .optional(),
    data: z.discriminatedUnion("type", [csvData, parquetData], 'must have type "csv" or "parquet"'),
  }),
  raw_column: z.strictObject({
    kind: z.literal("raw_column"),
    name: resourceName,
    type: rawColumnType,
    required: z.boolean().default(false),
    min: z.number().optional(),
    max: z.number().optional(),
    values: z.array(z.union([z.string(), z.number()])).optional(),
    compute: dataCompute,
    tags,
  }),
  aggregator: z.strictObject({
    kind: z.literal("aggregator"),
    name: resourceName,
    path: z.string().optional(),
    output_type: z.unknown(),
    inputs: declaredInputs,
  }),
  aggregate: z.strictObject({
    kind: z.literal("aggregate"),
    name: resourceName,
    aggregator: z.string(),
    inputs: givenInputs,
    args: z.record(z.string(), z.unknown()).optional(),
    compute: dataCompute,
    tags,
  }),
  transformer: z.strictObject({
    kind: z.literal("transformer"),
    name: resourceName,
    path: z.string().optional(),
    output_type: z.enum(COLUMN_TYPES, `must be one of ${COLUMN_TYPES.join(", ")}`),
    inputs: declaredInputs,
  }),
  transformed_column: z.strictObject({
    kind: z.literal("transformed_column"),
    name: resourceName,
    transformer: z.string(),
    inputs: givenInputs,
    args: z.record(z.string(), z.unknown()).optional(),
    compute: dataCompute,
    tags,
  }),
  constant: z.strictObject({
    kind: z.literal("constant"),
    name: resourceName,
    type: z.unknown(),
    value: z.unknown(),
    tags,
  }),
  model: z.strictObject({
    kind: z.literal("model"),
    name: resourceName,
    type: z
      .enum(["classification", "regression"], "must be classification or regression")
      .default("classification"),
    path: z.string().optional(),
    target_column: z.string(),
    feature_columns: z.array(z.string()).min(1, "must have at least one column"),
    training_columns: z.array(z.string()).default([]),
    aggregates: z.array(z.string()).default([]),
    hparams: z.record(z.string(), z.unknown()).default({}),
    prediction_key: z.string().default(""),
    data_partition_ratio: z
      .strictObject({
        training: z.number().positive("must be above 0").optional(),
        evaluation: z.number().positive("must be above 0").optional(),
      })
      .default({}),
    training: training.default(training.parse({})),
    evaluation: evaluation.default(evaluation.parse({})),
    compute: workerCompute,
    tags,
  }),
  api: z.strictObject({
    kind: z.literal("api"),
    name: addressName,
    model_name: resourceName.optional(),
    compute: z
      .strictObject({
        replicas: positive.max(REPLICAS_MAX, `must be at most ${REPLICAS_MAX}`).default(1),
        cpu: quantity(
          parseCpuMillis,
          CPU_MILLIS_MAX,
          "must be a number of CPUs such as 0.5 or 500m",
        ).nullish(),
        mem: quantity(parseBytes, MEMORY_BYTES_MAX, "must be a size such as 100M or 1Gi").nullish(),
        gpu: z.int().min(0, "must be at least 0").default(0),
      })
      .default({ replicas: 1, gpu: 0 }),
    tags,
  }),
} as const;

export type ResourceKind = keyof typeof RESOURCE_SCHEMAS;
export const RESOURCE_KINDS = Object.keys(RESOURCE_SCHEMAS) as ResourceKind[];

export type Resource<Kind extends ResourceKind = ResourceKind> = {
  [Each in Kind]: z.infer<(typeof RESOURCE_SCHEMAS)[Each]>;
}[Kind];
