/** An application's resources: which ids change with which part of it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { NodeKind } from "../../../src/contracts/config/applications.ts";
import { buildGraph, type GraphInputs } from "../../../src/legacy/check/build-graph.ts";
import { checkApp } from "../../../src/legacy/check/check-app.ts";
import { loadApp } from "../../../src/legacy/check/load-app.ts";
import { type Node, nodesOf, type ResourceGraph } from "../../../src/legacy/check/resource-graph.ts";

type Entry = { kind: string; name: string } & Record<string, unknown>;

/** Its resources by name; `tags` and `compute` stand where they may. */
const APP: readonly Entry[] = [
  { kind: "app", name: "shop" },
  {
    ...{ kind: "environment", name: "dev", limit: { num_rows: 100 } },
    data: { type: "csv", path: "s3://data/dev.csv", schema: ["price", "count", "sort"] },
  },
  {
    ...{ kind: "environment", name: "local" },
    data: { type: "csv", path: "data/local.csv", schema: ["price", "count", "sort"] },
  },
  { kind: "raw_column", name: "price", type: "FLOAT_COLUMN", min: 0, max: 10, required: true },
  { kind: "raw_column", name: "count", type: "INT_COLUMN" },
  { kind: "raw_column", name: "sort", type: "STRING_COLUMN", values: ["a", "b"] },
  { kind: "constant", name: "rate", type: "FLOAT", value: 2.5 },
  {
    ...{ kind: "aggregator", name: "own_mean", output_type: "FLOAT" },
    inputs: { columns: { col: "FLOAT_COLUMN" }, args: { factor: "FLOAT", unit: "STRING" } },
  },
  {
    ...{ kind: "transformer", name: "shift", path: "code/shift.py", output_type: "FLOAT_COLUMN" },
    inputs: { columns: { nums: ["FLOAT_COLUMN|INT_COLUMN"] }, args: { by: "FLOAT" } },
  },
  { kind: "aggregate", name: "price_mean", aggregator: "quern.mean", inputs: { columns: { col: "price" } } },
  {
    ...{ kind: "aggregate", name: "price_own", aggregator: "own_mean" },
    inputs: { columns: { col: "price" }, args: { factor: "rate" } },
    args: { unit: '"eur"' },
  },
  {
    ...{ kind: "transformed_column", name: "price_normal", transformer: "quern.normalize" },
    inputs: { columns: { num: "price" }, args: { mean: "price_mean", stddev: "price_own" } },
  },
  {
    ...{ kind: "transformed_column", name: "shifted", transformer: "shift" },
    inputs: { columns: { nums: ["count", "price"] } },
    args: { by: 3 },
  },
  {
    ...{ kind: "model", name: "dnn", target_column: "count", feature_columns: ["price_normal", "shifted"] },
    ...{ training_columns: ["sort"], aggregates: ["price_mean"], hparams: { layers: [4, 2] } },
    ...{ data_partition_ratio: { training: 3, evaluation: 1 } },
  },
  {
    kind: "model",
    name: "linear",
    path: "code/linear.py",
    target_column: "count",
    feature_columns: ["price"],
  },
  { kind: "api", name: "serve", model_name: "dnn" },
  { kind: "api", name: "linear" },
];

const directory = mkdtempSync(join(tmpdir(), "quern-graph-"));
afterAll(() => rmSync(directory, { recursive: true }));

const INPUTS: GraphInputs = {
  environment: "dev",
  version: "1",
  requirements: "",
  hashOf: (path) => `hash of ${path}`,
};

function graphOf(entries: readonly Entry[] = APP, inputs: Partial<GraphInputs> = {}): ResourceGraph {
  const loaded = loadApp(JSON.stringify(entries), "app.yaml", directory);
  const app = "errors" in loaded ? loaded : checkApp(loaded.resources, () => true);
  if ("errors" in app) throw new Error(JSON.stringify(app.errors));
  return buildGraph(app, { ...INPUTS, ...inputs });
}

const all = (graph: ResourceGraph): Node<NodeKind | "environment">[] => [
  graph.environment,
  ...nodesOf(graph),
];
/** Models and APIs may have the same names. */
const labelOf = ({ kind, name }: Node<NodeKind | "environment">) => (kind === "api" ? `api ${name}` : name);
const idsOf = (graph: ResourceGraph) => new Map(all(graph).map((node) => [labelOf(node), node.id]));

/** The application with `change` in the resource of this name. */
const withChange = (name: string, change: object, kind?: string) =>
  APP.map((entry) =>
    entry.name === name && (kind ?? entry.kind) === entry.kind ? { ...entry, ...change } : entry,
  );

/** The application with every `from` replaced by `to`. */
const renamed = (from: string, to: string): Entry[] =>
  JSON.parse(JSON.stringify(APP).replaceAll(`"${from}"`, `"${to}"`)) as Entry[];

const OF_DNN = ["dnn/training_dataset", "dnn", "api serve"];
const OF_LINEAR = ["linear/training_dataset", "linear", "api linear"];
const OF_PRICE = ["price", "price_mean", "price_own", "price_normal", "shifted", ...OF_DNN, ...OF_LINEAR];
const ALL = ["dev", "count", "sort", ...OF_PRICE];
const OF_MODELS = ["dnn", "api serve", "linear", "api linear"];

/** The resources whose id differs from the unchanged application, without those that are only in one of the two. */
function changedIn(
  entries: readonly Entry[],
  inputs: Partial<GraphInputs> = {},
  names = new Map<string, string>(),
) {
  const before = idsOf(graphOf());
  const after = idsOf(graphOf(entries, inputs));
  return [...before].flatMap(([name, id]) => {
    const now = after.get(names.get(name) ?? name);
    return now === undefined || now === id ? [] : [name];
  });
}

const csv = { type: "csv", path: "s3://data/dev.csv", schema: ["price", "count", "sort"] };
const dnn = (change: object) => withChange("dnn", change);

describe("the resources to compute again", () => {
  it.each<[string, readonly Entry[], Partial<GraphInputs>, readonly string[]]>([
    ["nothing", APP, {}, []],
    ["the order of the resources", [APP[0]!, ...APP.slice(1, 6).reverse(), ...APP.slice(6)], {}, []],
    ["the data's version", APP, { version: "2" }, ALL],
    ["the data's path", withChange("dev", { data: { ...csv, path: "s3://data/new.csv" } }), {}, ALL],
    ["how the data is read", withChange("dev", { data: { ...csv, drop_null: true } }), {}, ALL],
    ["the data's limit", withChange("dev", { limit: undefined }), {}, ALL],
    ["what the environment logs", withChange("dev", { log_level: { spark: "INFO" } }), {}, []],
    ["another environment", withChange("local", { limit: { num_rows: 5 } }), {}, []],
    ["a column's type", withChange("sort", { type: "INT_COLUMN", values: [1] }), {}, ALL],
    ["a column's least value", withChange("price", { min: 1 }), {}, OF_PRICE],
    ["a column's greatest value", withChange("price", { max: 9 }), {}, OF_PRICE],
    ["a column's legal values", withChange("sort", { values: ["a"] }), {}, ["sort", ...OF_DNN]],
    ["whether a column is required", withChange("sort", { required: true }), {}, ["sort", ...OF_DNN]],
    ["a column's compute", withChange("count", { compute: { executors: 2 } }), {}, []],
    [
      "the tags of a column that models see",
      withChange("sort", { tags: { a: 1 } }),
      {},
      ["dnn", "api serve"],
    ],
    ["the tags of a transformed column", withChange("shifted", { tags: { a: 1 } }), {}, ["dnn", "api serve"]],
    ["a constant's value", withChange("rate", { value: 3.5 }), {}, ["price_own", "price_normal", ...OF_DNN]],
    [
      "an aggregator's file",
      APP,
      { hashOf: (path) => `hash of ${path === "implementations/aggregators/own_mean.py" ? "more" : path}` },
      ["price_own", "price_normal", ...OF_DNN],
    ],
    [
      "a transformer's file",
      APP,
      { hashOf: (path) => `hash of ${path === "code/shift.py" ? "more" : path}` },
      ["shifted", ...OF_DNN],
    ],
    [
      "the type of a transformer's output",
      withChange("shift", { output_type: "FLOAT_LIST_COLUMN" }),
      {},
      ["shifted", ...OF_DNN],
    ],
    [
      "the columns of a call",
      withChange("shifted", { inputs: { columns: { nums: ["price", "count"] } } }),
      {},
      ["shifted", ...OF_DNN],
    ],
    ["an arg", withChange("shifted", { args: { by: 4 } }), {}, ["shifted", ...OF_DNN]],
    [
      "where an arg stands",
      withChange("shifted", { inputs: { columns: { nums: ["count", "price"] }, args: { by: 3 } }, args: {} }),
      {},
      [],
    ],
    [
      "a constant's value in place of its name",
      withChange("price_own", { args: { unit: '"eur"', factor: 2.5 } }),
      {},
      [],
    ],
    ["the former name of an aggregator", withChange("price_mean", { aggregator: "cortex.mean" }), {}, []],
    [
      "the aggregator",
      withChange("price_mean", { aggregator: "quern.avg" }),
      {},
      ["price_mean", "price_normal", ...OF_DNN],
    ],
    ["the requirements of Python", APP, { requirements: "numpy" }, OF_MODELS],
    [
      "a model's file",
      APP,
      { hashOf: (path) => `hash of ${path === "implementations/models/dnn.py" ? "more" : path}` },
      ["dnn", "api serve"],
    ],
    [
      "where a model's file is",
      withChange("linear", { path: "code/other.py" }, "model"),
      {},
      ["linear", "api linear"],
    ],
    ["the kind of a model", dnn({ type: "regression" }), {}, ["dnn", "api serve"]],
    ["a model's parameters", dnn({ hparams: { layers: [2, 4] } }), {}, ["dnn", "api serve"]],
    ["a model's prediction key", dnn({ prediction_key: "x" }), {}, ["dnn", "api serve"]],
    ["a model's training", dnn({ training: { num_steps: 7 } }), {}, ["dnn", "api serve"]],
    ["a model's evaluation", dnn({ evaluation: { num_steps: 7 } }), {}, ["dnn", "api serve"]],
    ["a model's tags", dnn({ tags: { a: 1 } }), {}, ["dnn", "api serve"]],
    ["a model's compute", dnn({ compute: { cpu: 2 } }), {}, []],
    ["a model's aggregates", dnn({ aggregates: [] }), {}, ["dnn", "api serve"]],
    [
      "the order of features",
      dnn({ feature_columns: ["shifted", "price_normal"] }),
      {},
      ["dnn", "api serve"],
    ],
    [
      "which columns are features",
      dnn({ feature_columns: ["price_normal", "shifted", "sort"], training_columns: [] }),
      {},
      ["dnn", "api serve"],
    ],
    ["the columns of a model", dnn({ training_columns: [] }), {}, OF_DNN],
    [
      "the shares of a model's data",
      dnn({ data_partition_ratio: { training: 4, evaluation: 1 } }),
      {},
      OF_DNN,
    ],
    [
      "the same shares in other numbers",
      dnn({ data_partition_ratio: { training: 0.75, evaluation: 0.25 } }),
      {},
      [],
    ],
    [
      "shares that are the default ones",
      withChange("linear", { data_partition_ratio: { training: 0.8, evaluation: 0.2 } }, "model"),
      {},
      [],
    ],
    ["the model of an API", withChange("serve", { model_name: "linear" }), {}, ["api serve"]],
    ["the compute of an API", withChange("serve", { compute: { replicas: 3 } }), {}, []],
  ])("are right after a change of %s", (_, entries, inputs, expected) => {
    expect(changedIn(entries, inputs).sort()).toEqual([...expected].sort());
  });

  it.each<[string, string, readonly string[]]>([
    ["an environment", "dev", []],
    // Its rows, and the features of a model, have columns by name.
    ["a raw column", "count", ALL],
    ["a constant", "rate", []],
    ["an aggregate that a model has by name", "price_mean", ["dnn", "api serve"]],
    ["an aggregate that none has", "price_own", []],
    ["a transformed column", "price_normal", OF_DNN],
  ])("are right after renaming %s", (_, from, expected) => {
    const names = new Map([[from, "other"]]);
    const environment = from === "dev" ? { environment: "other" } : {};
    const changed = changedIn(renamed(from, "other"), environment, names);
    expect(changed.sort()).toEqual([...expected].sort());
  });

  it("include a changed data file only if it belongs to the application", () => {
    const other = { hashOf: () => "other" };
    const local = { environment: "local" };
    expect(graphOf(APP, local).environment.id).not.toBe(graphOf(APP, { ...local, ...other }).environment.id);
    expect(graphOf().environment.id).toBe(graphOf(APP, other).environment.id);
    const asked: string[] = [];
    graphOf(APP, { ...local, hashOf: (path) => `${asked.push(path)}` });
    expect(asked).toContain("data/local.csv");
  });

  it("include two identical definitions once", () => {
    const twin = { ...APP.find(({ name }) => name === "price_mean")!, name: "twin" };
    const ids = idsOf(graphOf([...APP, twin]));
    expect(ids.get("twin")).toBe(ids.get("price_mean"));
    expect(new Set(ids.values()).size).toBe(ids.size - 1);
  });
});

describe("the graph of an application", () => {
  // Each test builds its own, because Stryker notices only what fails inside a test.
  const built = () => {
    const graph = graphOf();
    return { graph, ids: idsOf(graph) };
  };

  it("has every resource with a status, in the order of computation", () => {
    const { graph } = built();
    expect(nodesOf(graph).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      ...["raw_column price", "raw_column count", "raw_column sort"],
      ...["aggregate price_mean", "aggregate price_own"],
      ...["transformed_column price_normal", "transformed_column shifted"],
      ...["training_dataset dnn/training_dataset", "training_dataset linear/training_dataset"],
      ...["model dnn", "model linear", "api serve", "api linear"],
    ]);
    expect(graph).toMatchObject({
      app: "shop",
      environment: {
        kind: "environment",
        name: "dev",
        version: "1",
        resource: { name: "dev" },
        dependsOn: [],
      },
    });
    for (const node of all(graph)) expect(node.id).toMatch(/^[0-9a-f]{64}$/);
  });

  it("lists the dependencies of each resource once", () => {
    const { graph, ids } = built();
    const named = (given: readonly string[]) =>
      given.map((id) => [...ids].find(([, each]) => each === id)?.[0] ?? id);
    const needs = Object.fromEntries(all(graph).map((node) => [labelOf(node), named(node.dependsOn)]));
    expect(needs).toEqual({
      ...{ dev: [], price: ["dev"], count: ["dev"], sort: ["dev"] },
      ...{ price_mean: ["price"], price_own: ["price"] },
      ...{ price_normal: ["price", "price_mean", "price_own"], shifted: ["count", "price"] },
      "dnn/training_dataset": ["price_normal", "shifted", "sort", "count"],
      dnn: ["dnn/training_dataset", "price_mean"],
      ...{ "linear/training_dataset": ["price", "count"], linear: ["linear/training_dataset"] },
      ...{ "api serve": ["dnn"], "api linear": ["linear"] },
    });
    const twice = graphOf(withChange("shifted", { inputs: { columns: { nums: ["count", "count"] } } }));
    expect(twice.transformed_columns[1]!.dependsOn).toEqual([ids.get("count")]);
  });

  it("has calls with their code, columns and args", () => {
    const { graph, ids } = built();
    expect(graph.aggregates.map(({ call }) => call)).toEqual([
      { code: { built_in: "mean" }, columns: { col: "price" }, args: {} },
      {
        code: { path: "implementations/aggregators/own_mean.py" },
        columns: { col: "price" },
        args: { factor: { value: 2.5 }, unit: { value: "eur" } },
      },
    ]);
    expect(graph.transformed_columns.map(({ call, output_type }) => ({ call, output_type }))).toEqual([
      {
        call: {
          code: { built_in: "normalize" },
          columns: { num: "price" },
          args: { mean: { aggregate: ids.get("price_mean") }, stddev: { aggregate: ids.get("price_own") } },
        },
        output_type: "FLOAT_COLUMN",
      },
      {
        call: {
          code: { path: "code/shift.py" },
          columns: { nums: ["count", "price"] },
          args: { by: { value: 3 } },
        },
        output_type: "FLOAT_COLUMN",
      },
    ]);
  });

  it("has the default path of code that gives none", () => {
    const others = [
      { ...APP.find(({ name }) => name === "own_mean")!, name: "other_mean", path: "code/other.py" },
      { ...APP.find(({ name }) => name === "shift")!, name: "other_shift", path: "code/other.py" },
    ];
    const placed = graphOf([
      APP[0]!,
      ...others,
      ...withChange("own_mean", { path: "code/mean.py" })
        .slice(1)
        .map((entry) => (entry.name === "shift" ? { ...entry, path: undefined } : entry)),
    ]);
    expect(placed.aggregates[1]!.call.code).toEqual({ path: "code/mean.py" });
    expect(placed.transformed_columns[1]!.call.code).toEqual({
      path: "implementations/transformers/shift.py",
    });
  });

  it("has data sets, models and APIs that fit together", () => {
    const { graph, ids } = built();
    expect(graph.training_datasets).toMatchObject([
      { ratio: [3, 1], columns: ["price_normal", "shifted", "sort", "count"] },
      { ratio: [0.8, 0.2], columns: ["price", "count"] },
    ]);
    expect(graph.models).toMatchObject([
      {
        path: "implementations/models/dnn.py",
        dataset: ids.get("dnn/training_dataset"),
        aggregates: { price_mean: ids.get("price_mean") },
      },
      { path: "code/linear.py", dataset: ids.get("linear/training_dataset"), aggregates: {} },
    ]);
    expect(graph.apis).toMatchObject([{ model: ids.get("dnn") }, { model: ids.get("linear") }]);
  });

  it("has ids that stay the same in later releases, so that an update of Quern computes nothing again", () => {
    const { ids } = built();
    expect(Object.fromEntries([...ids].map(([name, id]) => [name, id.slice(0, 8)]))).toEqual({
      ...{ dev: "c86e00b4", price: "e187c603", count: "77f4dd4c", sort: "2cd917c6" },
      ...{ price_mean: "041439b6", price_own: "7eb8c1b4", price_normal: "6ffa2fa9", shifted: "c4c2d0cf" },
      ...{ "dnn/training_dataset": "867ef0b8", dnn: "f593ba91", "api serve": "a6130288" },
      ...{ "linear/training_dataset": "3f457f07", linear: "870f6ece", "api linear": "a1fd2a97" },
    });
  });

  it("is refused for an undefined environment, and the error lists the defined ones", () => {
    expect(() => graphOf(APP, { environment: "prod" })).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: 'environment "prod" is not defined; there are dev, local: choose one with --environment',
      }),
    );
  });
});
