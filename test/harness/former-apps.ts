/**
 * Two applications in the manner of Cortex's examples: fraud among transactions, and the cost of an insurance. Their
 * data is generated from a seed.
 */
import { normalizeTemplate } from "./iris-app.ts";
import { seeded } from "./random.ts";

const NUMBERS = ["time", "v1", "v2", "v3", "amount"];

const raw = (name: string, type: string, rule = "") =>
  `- {kind: raw_column, name: ${name}, type: ${type}, required: true${rule}}\n`;
const environment = (path: string, schema: readonly string[], more = "") =>
  `- kind: environment\n  name: dev\n  data: {type: csv, path: ${path}, schema: [${schema.join(", ")}]${more}}\n`;

/** Roughly normal: the sum of twelve draws. */
function normal(random: () => number): number {
  return Array.from({ length: 12 }, random).reduce((sum, each) => sum + each, -6);
}

function transactions(): string {
  const random = seeded(3);
  const lines = Array.from({ length: 1500 }, (_, at) => {
    const isFraud = random() < 0.1;
    const signs = [0, 0, 0].map(() => (normal(random) + (isFraud ? 2.2 : 0)).toFixed(4));
    return [at, ...signs, (random() * 100).toFixed(2), Number(isFraud)].join(",");
  });
  return `${[...NUMBERS, "class"].join(",")}\n${lines.join("\n")}\n`;
}

/** A rare class is weighted by a column that only training needs, which a transformer for Spark makes. */
export const FRAUD_APP: Record<string, string> = {
  "app.yaml": "- kind: app\n  name: fraud\n",
  "transactions.csv": transactions(),
  "resources/raw_columns.yaml":
    environment("transactions.csv", [...NUMBERS, "class"], ", csv_config: {header: true}") +
    NUMBERS.map((name) => raw(name, "FLOAT_COLUMN")).join("") +
    raw("class", "INT_COLUMN", ", values: [0, 1]"),
  "resources/normalize.yaml": `${normalizeTemplate("normalize")}${NUMBERS.map((column) => `- {kind: embed, template: normalize, args: {column: ${column}}}\n`).join("")}`,
  "resources/weight_column.yaml": `- kind: aggregate
  name: class_distribution
  aggregator: cortex.class_distribution_int
  inputs:
    columns:
      col: class

- kind: transformer
  name: weight
  inputs:
    columns:
      col: INT_COLUMN
    args:
      class_distribution: {INT: FLOAT}
  output_type: FLOAT_COLUMN

- kind: transformed_column
  name: weight_column
  transformer: weight
  inputs:
    columns:
      col: class
    args:
      class_distribution: class_distribution
`,
  "implementations/transformers/weight.py": `def transform_spark(data, columns, args, transformed_column_name):
    import pyspark.sql.functions as functions

    shares = args["class_distribution"]
    is_honest = data[columns["col"]] == 0
    return data.withColumn(transformed_column_name, functions.when(is_honest, shares[1]).otherwise(shares[0]))
`,
  "resources/dnn.yaml": `- kind: model
  name: dnn
  type: classification
  target_column: class
  feature_columns: [${NUMBERS.map((name) => `${name}_normalized`).join(", ")}]
  training_columns: [weight_column]
  hparams: {hidden_units: [20, 20]}
  data_partition_ratio: {training: 0.8, evaluation: 0.2}
  training: {num_steps: 300}
- kind: api
  name: fraud
  model_name: dnn
  compute: {replicas: 1}
`,
  "implementations/models/dnn.py": `import tensorflow as tf


def create_estimator(run_config, model_config):
    columns = [tf.feature_column.numeric_column(column["name"]) for column in model_config["feature_columns"]]
    return tf.estimator.DNNClassifier(
        feature_columns=columns,
        hidden_units=model_config["hparams"]["hidden_units"],
        n_classes=2,
        weight_column="weight_column",
        config=run_config,
    )
`,
};

const REGIONS = ["northwest", "northeast", "southwest", "southeast"];

function customers(): string {
  const random = seeded(4);
  const oneOf = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)]!;
  const line = () => {
    const age = 18 + Math.floor(random() * 46);
    const smoker = oneOf(["yes", "no", "no", "no"]);
    const bmi = Math.min(50, Math.max(16, 30 + 6 * normal(random)));
    const charges = 250 * age + (smoker === "yes" ? 23_000 : 0) + 30 * bmi + 1000 * normal(random);
    const children = Math.floor(random() * 6);
    return [
      age,
      oneOf(["female", "male"]),
      bmi.toFixed(2),
      children,
      smoker,
      oneOf(REGIONS),
      charges.toFixed(2),
    ];
  };
  return `${Array.from({ length: 1200 }, () => line().join(",")).join("\n")}\n`;
}

/** Categories, buckets and an aggregated vocabulary, for a target that is normalized. */
export const INSURANCE_APP: Record<string, string> = {
  "app.yaml": "- kind: app\n  name: insurance\n",
  "insurance.csv": customers(),
  "resources/features.yaml":
    environment("insurance.csv", ["age", "sex", "bmi", "children", "smoker", "region", "charges"]) +
    raw("age", "INT_COLUMN", ", min: 0, max: 100") +
    raw("sex", "STRING_COLUMN", ", values: [female, male]") +
    raw("bmi", "FLOAT_COLUMN", ", min: 0, max: 60") +
    raw("children", "INT_COLUMN", ", min: 0, max: 10") +
    raw("smoker", "STRING_COLUMN", ", values: ['yes', 'no']") +
    raw("region", "STRING_COLUMN", `, values: [${REGIONS.join(", ")}]`) +
    raw("charges", "FLOAT_COLUMN", ", min: 0, max: 100000") +
    `- {kind: aggregate, name: charges_mean, aggregator: cortex.mean, inputs: {columns: {col: charges}}}
- {kind: aggregate, name: charges_stddev, aggregator: cortex.stddev, inputs: {columns: {col: charges}}}
- {kind: aggregate, name: children_set, aggregator: cortex.collect_set_int, inputs: {columns: {col: children}}}
- kind: transformed_column
  name: charges_normalized
  transformer: cortex.normalize
  inputs:
    columns: {num: charges}
    args: {mean: charges_mean, stddev: charges_stddev}
`,
  "resources/models.yaml": `- kind: model
  name: dnn
  type: regression
  target_column: charges_normalized
  feature_columns: [age, sex, bmi, children, smoker, region]
  hparams: {hidden_units: [100, 100, 100]}
  data_partition_ratio: {training: 0.8, evaluation: 0.2}
  training: {num_steps: 300}
  aggregates: [children_set]
- kind: api
  name: cost
  model_name: dnn
  compute: {replicas: 1}
`,
  "implementations/models/dnn.py": `import tensorflow as tf


def one_of(name, values):
    return tf.feature_column.indicator_column(tf.feature_column.categorical_column_with_vocabulary_list(name, values))


def create_estimator(run_config, model_config):
    age = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), list(range(15, 70, 5)))
    bmi = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("bmi"), list(range(15, 60, 5)))
    return tf.estimator.DNNRegressor(
        feature_columns=[
            one_of("sex", ["female", "male"]),
            one_of("smoker", ["yes", "no"]),
            one_of("region", ["northwest", "northeast", "southwest", "southeast"]),
            age,
            bmi,
            one_of("children", model_config["aggregates"]["children_set"]),
        ],
        hidden_units=model_config["hparams"]["hidden_units"],
        config=run_config,
    )
`,
};
