/** The iris application of Cortex, file by file. */

const FLOATS = ["sepal_length", "sepal_width", "petal_length", "petal_width"];

/** Three resources for a column; it is embedded once for each. */
export const normalizeTemplate = (name: string) => `- kind: template
  name: ${name}
  yaml: |
    - kind: aggregate
      name: {column}_mean
      aggregator: cortex.mean
      inputs:
        columns:
          col: { column }
    - kind: aggregate
      name: {column}_stddev
      aggregator: quern.stddev
      inputs:
        columns:
          col: {column}
    - kind: transformed_column
      name: {column}_normalized
      transformer: quern.normalize
      inputs:
        columns:
          num: {column}
        args:
          mean: {column}_mean
          stddev: {column}_stddev
`;

export const IRIS_APP: Record<string, string> = {
  "app.yaml": "- kind: app\n  name: iris\n",
  "resources/environments.yaml": `- kind: environment
  name: dev
  data:
    type: csv
    path: s3://data/iris.csv
    schema: [sepal_length, sepal_width, petal_length, petal_width, class]
- kind: environment
  name: prod
  data:
    type: parquet
    path: s3://data/iris.parquet
    schema:
${[...FLOATS, "class"].map((name) => `      - {parquet_column_name: ${name}, raw_column_name: ${name}}\n`).join("")}`,
  "resources/raw_columns.yaml": `${FLOATS.map(
    (name) => `- kind: raw_column\n  name: ${name}\n  type: FLOAT_COLUMN\n  min: 0\n  max: 10\n`,
  ).join("")}- kind: raw_column
  name: class
  type: STRING_COLUMN
  values: [Iris-setosa, Iris-versicolor, Iris-virginica]
`,
  "resources/columns.yaml": `${normalizeTemplate("normalized")}${FLOATS.map((name) => `- kind: embed\n  template: normalized\n  args: {column: ${name}}\n`).join("")}- kind: aggregate
  name: class_index
  aggregator: quern.index_string
  inputs: {columns: {col: class}}
- kind: transformed_column
  name: class_indexed
  transformer: quern.index_string
  inputs: {columns: {text: class}}
  args: {index: class_index}
`,
  "resources/models.yaml": `- kind: model
  name: dnn
  type: classification
  target_column: class_indexed
  feature_columns: [${FLOATS.map((name) => `${name}_normalized`).join(", ")}]
  hparams: {hidden_units: [4, 2]}
  data_partition_ratio: {training: 80, evaluation: 20}
  training: {num_steps: 1000, batch_size: 10}
  aggregates: [class_index]
- kind: api
  name: iris-type
  model_name: dnn
  compute: {replicas: 1}
`,
  "implementations/models/dnn.py": "def create_estimator(run_config, model_config):\n    pass\n",
};
