/** Broken applications: the change, and the exact error. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkApplication } from "../../src/legacy/check/application.ts";
import { IRIS_APP } from "../harness/iris-app.ts";

/** The errors of these files, as `file:line:column detail`; the application's name where there are none. */
function check(files: Record<string, string>): string[] | string {
  const directory = mkdtempSync(join(tmpdir(), "quern-app-"));
  try {
    for (const [name, text] of Object.entries(files).filter(([name]) => name !== "app.yaml")) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
    const checked = checkApplication(files["app.yaml"]!, "app.yaml", directory);
    if (checked === undefined) return "no application";
    return "errors" in checked
      ? checked.errors.map(({ pointer, detail }) => `${pointer} ${detail}`)
      : checked.name;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** All errors for each row of the tables below. */
const ERRORS = JSON.parse(readFileSync(new URL("./broken-apps.json", import.meta.url), "utf8")) as Record<
  string,
  string[]
>;

/** The whole file. */
const ALL = /^[\s\S]*$/;
const ENV = "resources/environments.yaml";
const RAW = "resources/raw_columns.yaml";
const COLUMNS = "resources/columns.yaml";
const MODELS = "resources/models.yaml";
const OWN = `- kind: aggregator
  name: spread
  output_type: FLOAT
  inputs:
    columns: {col: INT_COLUMN|FLOAT_COLUMN}
    args: {scale: FLOAT}
- kind: constant
  name: two
  type: INT
  value: 2
- kind: aggregate
  name: petal_spread
  aggregator: spread
  inputs: {columns: {col: petal_width}, args: {scale: two}}
`;
const OWN_FILE = { "implementations/aggregators/spread.py": "" };

describe("an application", () => {
  it("cannot grow without limit through its templates", () => {
    const template = `- kind: template\n  name: large\n  yaml: |\n    - kind: constant\n      name: "{name}"\n      type: STRING\n      value: ${"x".repeat(100_000)}\n`;
    const embeds = Array.from(
      { length: 60 },
      (_, i) => `- kind: embed\n  template: large\n  args: {name: c${i}}\n`,
    );
    const errors = check({ ...IRIS_APP, "large.yaml": template + embeds.join("") });
    expect(errors).toEqual([
      expect.stringMatching(/^large\.yaml:\d+:3 embed: .* more than 4194304 characters/),
    ]);
  });

  it("is read from all of its files, templates filled in", () => {
    expect(check(IRIS_APP)).toBe("iris");
  });

  it("may have implementations of its own, constants, and args beside or inside the inputs", () => {
    expect(check({ ...IRIS_APP, ...OWN_FILE, "more/own.yml": OWN })).toBe("iris");
    const literal = OWN.replace("args: {scale: two}", "args: {scale: 0.5}");
    expect(check({ ...IRIS_APP, ...OWN_FILE, "own.yaml": literal })).toBe("iris");
  });

  it("may have null for every optional key", () => {
    const model = IRIS_APP[MODELS]!.replace("  hparams:", "  tags: null\n  hparams:");
    expect(model).not.toBe(IRIS_APP[MODELS]);
    const env = IRIS_APP[ENV]!.replace(
      "    type: csv\n",
      "    type: csv\n    csv_config: null\n    drop_null: null\n",
    );
    expect(check({ ...IRIS_APP, [MODELS]: model, [ENV]: env })).toBe("iris");
  });

  it("is invalid without a resource of the kind app", () => {
    expect(check({ "app.yaml": "- name: a\n  predictor: {path: p.py}\n" })).toBe("no application");
  });

  it.each<[what: string, file: string, from: string | RegExp, to: string]>([
    ["an app's name", "app.yaml", "iris", "Iris_App"],
    ["two apps", "app.yaml", "name: iris\n", "name: iris\n- kind: app\n  name: two\n"],
    ["an unknown kind", MODELS, "kind: api", "kind: service"],
    ["no kind", MODELS, "- kind: api\n  name", "- name"],
    ["a key with a typo", MODELS, "hparams:", "hparam:"],
    ["a file that is no list", MODELS, ALL, "kind: model\n"],
    ["a file that is no YAML", MODELS, "type: classification", "type: ["],
    ["no environment", ENV, ALL, ""],
    ["two environments of a name", ENV, "name: prod", "name: dev"],
    ["a kind of data", ENV, "type: csv", "type: json"],
    ["a path of data", ENV, "s3://data/iris.csv", "http://data/iris.csv"],
    ["a file of data", ENV, "s3://data/iris.csv", "iris.csv"],
    ["a column of the schema", ENV, "petal_width, class]", "petal_wide, class]"],
    ["a column that is not ingested", ENV, ", class]", "]"],
    ["a column twice in the schema", ENV, "petal_width, class]", "petal_width, class, class]"],
    [
      "two limits",
      ENV,
      "  data:\n    type: csv",
      "  limit: {num_rows: 5, fraction_of_rows: 0.5}\n  data:\n    type: csv",
    ],
    [
      "a fraction of rows",
      ENV,
      "  data:\n    type: csv",
      "  limit: {fraction_of_rows: 2}\n  data:\n    type: csv",
    ],
    [
      "an option of CSV",
      ENV,
      "    path: s3://data/iris.csv",
      "    csv_config: {seperator: ;}\n    path: s3://data/iris.csv",
    ],
    ["a column's type", RAW, "type: STRING_COLUMN", "type: TEXT"],
    ["bounds of a text", RAW, "  values:", "  min: 1\n  values:"],
    ["bounds the wrong way round", RAW, "  min: 0\n  max: 10", "  min: 11\n  max: 10"],
    ["values of another type", RAW, "Iris-virginica]", "7]"],
    ["a name for two columns", RAW, "name: class\n", "name: sepal_width\n"],
    [
      "a template that is not there",
      COLUMNS,
      "template: normalized\n  args: {column: petal_width}",
      "template: normal\n  args: {column: petal_width}",
    ],
    ["an arg that a template lacks", COLUMNS, "args: {column: petal_width}", "args: {}"],
    [
      "an arg that a template does not know",
      COLUMNS,
      "args: {column: petal_width}",
      "args: {column: petal_width, more: 1}",
    ],
    ["an aggregator", COLUMNS, "aggregator: quern.index_string", "aggregator: quern.index_text"],
    [
      "an aggregator of the user's own",
      COLUMNS,
      "aggregator: quern.index_string",
      "aggregator: index_string",
    ],
    ["a transformer", COLUMNS, "transformer: quern.index_string", "transformer: quern.index"],
    ["a column of an aggregate", COLUMNS, "{columns: {col: class}}", "{columns: {col: klass}}"],
    [
      "a transformed column for an aggregate",
      COLUMNS,
      "{columns: {col: class}}",
      "{columns: {col: class_indexed}}",
    ],
    ["the type of a column", COLUMNS, "{columns: {col: class}}", "{columns: {col: petal_width}}"],
    ["an input that is missing", COLUMNS, "{columns: {text: class}}", "{columns: {}}"],
    [
      "an input that is not known",
      COLUMNS,
      "{columns: {text: class}}",
      "{columns: {text: class, col: class}}",
    ],
    ["a list for one column", COLUMNS, "{columns: {text: class}}", "{columns: {text: [class]}}"],
    ["an arg that is missing", COLUMNS, "  args: {index: class_index}\n", ""],
    ["an arg that is not there", COLUMNS, "{index: class_index}", "{index: class_indices}"],
    ["the type of an arg", COLUMNS, "{index: class_index}", "{index: petal_width_mean}"],
    ["a literal's type", COLUMNS, "{index: class_index}", "{index: [1, 2]}"],
    ["a target", MODELS, "target_column: class_indexed", "target_column: klass"],
    ["a target's type", MODELS, "target_column: class_indexed", "target_column: class"],
    ["a feature", MODELS, "petal_width_normalized]", "petal_width_normal]"],
    ["a feature twice", MODELS, "petal_width_normalized]", "petal_width_normalized, petal_width_normalized]"],
    [
      "no feature",
      MODELS,
      "feature_columns: [sepal_length_normalized, sepal_width_normalized, petal_length_normalized, petal_width_normalized]",
      "feature_columns: []",
    ],
    [
      "a training column that is a feature",
      MODELS,
      "  hparams:",
      "  training_columns: [petal_width_normalized]\n  hparams:",
    ],
    ["half a ratio", MODELS, "{training: 80, evaluation: 20}", "{training: 80}"],
    ["steps and epochs", MODELS, "num_steps: 1000,", "num_steps: 1000, num_epochs: 3,"],
    ["no steps", MODELS, "num_steps: 1000,", "num_steps: 0,"],
    ["an aggregate of a model", MODELS, "aggregates: [class_index]", "aggregates: [class_idx]"],
    ["an api's model", MODELS, "model_name: dnn", "model_name: rnn"],
    ["an api's replicas", MODELS, "replicas: 1", "replicas: 0"],
    [
      "a name for two apis",
      MODELS,
      "replicas: 1}\n",
      "replicas: 1}\n- kind: api\n  name: iris-type\n  model_name: dnn\n",
    ],
  ])("gets the exact error for %s", (what, file, from, to) => {
    const changed = IRIS_APP[file]!.replace(from, to);
    expect(changed).not.toBe(IRIS_APP[file]);
    expect(check({ ...IRIS_APP, [file]: changed })).toEqual(ERRORS[what]);
  });

  it("gets an error for a missing file of a model", () => {
    const { "implementations/models/dnn.py": _, ...files } = IRIS_APP;
    expect(check(files)).toEqual(ERRORS["a model's file"]);
  });

  it.each<[what: string, from: string, to: string]>([
    ["an aggregator's file without it", "", ""],
    ["an output's type", "output_type: FLOAT", "output_type: NUMBER"],
    ["a constant's value", "value: 2", "value: two"],
    ["an arg's type", "args: {scale: FLOAT}", "args: {scale: TEXT}"],
    ["a text for a number", "args: {scale: two}", "args: {scale: '\"two\"'}"],
    ["a constant's name", "name: two", "name: class_index"],
  ])("gets the exact error of its own implementation for %s", (what, from, to) => {
    const files = { ...IRIS_APP, ...(from === "" ? {} : OWN_FILE), "own.yaml": OWN.replace(from, to) };
    expect(check(files)).toEqual(ERRORS[what]);
  });

  it("refuses templates inside templates", () => {
    const nested =
      "- kind: template\n  name: outer\n  yaml: |\n    - kind: embed\n      template: normalized\n      args: {}\n- kind: embed\n  template: outer\n  args: {}\n";
    expect(check({ ...IRIS_APP, "nested.yaml": nested })).toEqual(ERRORS["a template in a template"]);
  });
});
