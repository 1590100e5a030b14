/**
 * Declarative applications: from a directory of YAML and a CSV to predictions, and the resources that a change computes
 * again.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  applicationServer,
  type Edit,
  IrisExample,
  lightModel,
  SETOSA,
  SETOSA_PREDICTION,
} from "../../harness/iris-example.ts";

const MODELS = "resources/models.yaml";
const COLUMNS = "resources/transformed_columns.yaml";
const RAW = "resources/raw_columns.yaml";
const EVERYTHING = [
  ...["sepal_length", "sepal_width", "petal_length", "petal_width"].flatMap((column) => [
    column,
    `${column}_mean`,
    `${column}_stddev`,
    `${column}_normalized`,
  ]),
  ...["class", "class_index", "class_indexed", "dnn", "dnn/training_dataset"],
].sort();

/**
 * Changes of the example, and the resources that must be computed for each: one of each kind. What each change
 * affects, in all cases, is in test/legacy/check/build-graph.test.ts.
 */
const CHANGES: { name: string; edits: Edit[]; computed: string[]; message?: string }[] = [
  {
    name: "a bound of a column",
    edits: [
      {
        file: RAW,
        from: "name: petal_width\n  type: FLOAT_COLUMN\n  min: 0",
        to: "name: petal_width\n  type: FLOAT_COLUMN\n  min: -1",
      },
    ],
    computed: [
      "dnn",
      "dnn/training_dataset",
      "petal_width",
      "petal_width_mean",
      "petal_width_normalized",
      "petal_width_stddev",
    ],
  },
  {
    name: "the estimator's code",
    edits: [{ file: "implementations/models/dnn.py", from: "nearness = 1 ", to: "nearness = 2 " }],
    computed: ["dnn"],
  },
  {
    name: "the same shares in other numbers",
    edits: [{ file: MODELS, from: "training: 80\n    evaluation: 20", to: "training: 4\n    evaluation: 1" }],
    computed: [],
    message: "Deployment is up-to-date",
  },
  {
    name: "the number of replicas",
    edits: [{ file: MODELS, from: "replicas: 1", to: "replicas: 2" }],
    computed: [],
    message: "Deployment updated",
  },
  {
    name: "the names of aggregates",
    edits: [{ file: COLUMNS, from: "_mean", to: "_average" }],
    computed: [],
    message: "Deployment updated",
  },
  {
    name: "another aggregate that nothing uses",
    edits: [
      {
        file: "resources/more.yaml",
        text: "- kind: aggregate\n  name: widest\n  aggregator: quern.max_float\n  inputs: {columns: {col: petal_width}}\n",
      },
    ],
    computed: ["widest"],
  },
  {
    name: "a second model that is the same, with an API",
    edits: [
      {
        file: "resources/more.yaml",
        text: `- kind: model
  name: twin
  path: implementations/models/dnn.py
  target_column: class_indexed
  feature_columns: [sepal_length_normalized, sepal_width_normalized, petal_length_normalized, petal_width_normalized]
  hparams: {hidden_units: [4, 2]}
  data_partition_ratio: {training: 80, evaluation: 20}
  training: {num_steps: 1000}
  aggregates: [class_index]
- kind: api
  name: twin
`,
      },
    ],
    computed: [],
    message: "Deployment updated",
  },
  {
    name: "the data itself",
    edits: [
      { file: "iris.csv", from: "5.1,3.5,1.4,0.2,Iris-setosa\n4.9", to: "5.0,3.5,1.4,0.2,Iris-setosa\n4.9" },
    ],
    computed: EVERYTHING,
  },
];

describe("the iris application", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  const predict = () => server.post("/iris/iris-type", SETOSA);
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("is deployed, trained and predicts", async () => {
    iris.write();
    const started = Date.now();
    expect(iris.deploy()).toBe("Deployment started");
    const answer = (await (await predict()).json()) as {
      classification_predictions: Record<string, unknown>[];
      resource_id: string;
    };
    expect(Date.now() - started).toBeLessThan(60_000);
    expect(answer.resource_id).toMatch(/^[0-9a-f]{63,64}$/);
    expect(answer.classification_predictions).toEqual([SETOSA_PREDICTION]);
    expect((await iris.resource("iris-type")).resource_id).toBe(answer.resource_id);
  });

  it("has the aggregates of the original, to six digits", async () => {
    const values = Object.fromEntries((await iris.state()).resources.map(({ name, value }) => [name, value]));
    for (const [column, mean, stddev] of [
      ["petal_length", 3.7586666552, 1.7644204144],
      ["petal_width", 1.1986666581, 0.7631607319],
      ["sepal_length", 5.843333327, 0.8280661129],
      ["sepal_width", 3.0540000025, 0.433594311],
    ] as const) {
      expect(values[`${column}_mean`]).toBeCloseTo(mean, 8);
      expect(values[`${column}_stddev`]).toBeCloseTo(stddev, 8);
    }
    expect(values.class_index).toEqual(["Iris-setosa", "Iris-versicolor", "Iris-virginica"]);
  });

  it("computes nothing if nothing has changed", async () => {
    const before = new Date().toISOString();
    expect(iris.deploy()).toBe("Deployment is up-to-date");
    expect(await iris.computedAfter(before)).toEqual([]);
  });

  it.each(CHANGES)("computes what $name affects", async ({ edits, computed, message }) => {
    iris.write(lightModel());
    iris.deploy();
    iris.write(lightModel(), ...edits);
    const before = new Date().toISOString();
    expect(iris.deploy()).toBe(message ?? "Deployment started");
    expect(await iris.computedAfter(before)).toEqual(computed);
    expect((await predict()).status).toBe(200);
  });

  it("deletes an API that is no longer in the files, and reads data again on refresh", async () => {
    const hold = join(server.dir, "hold");
    const held = `import os, time\n    while os.path.exists(${JSON.stringify(hold)}): time.sleep(0.02)`;
    iris.write(lightModel(held));
    iris.deploy();
    expect((await server.post("/iris/twin", SETOSA)).status).toBe(404);
    writeFileSync(hold, "");
    const before = new Date().toISOString();
    expect(server.cli(["refresh", "-a", "iris"]).out).toBe("Cache deleted, deployment started\n");
    expect(server.cli(["deploy", iris.directory]).out).toBe("Deployment is already running\n");
    rmSync(hold);
    iris.deploy();
    expect(await iris.computedAfter(before)).toEqual(EVERYTHING);
  });

  it("answers invalid requests with the messages of the original", async () => {
    const whole = { sepal_length: 5.2, sepal_width: 3.6, petal_length: 1.4, petal_width: 0.3 };
    const { petal_width, ...without } = whole;
    for (const [body, status, text] of [
      ["{", 400, "Malformed JSON"],
      [
        { sample: [] },
        406,
        'prediction failed for sample: {"sample": []} (top level `samples` key not found in request)',
      ],
      [
        { samples: 1 },
        406,
        'prediction failed for sample: {"samples": 1} (expected the value of key `samples` to be a list of json objects)',
      ],
      [
        { samples: [whole, without] },
        406,
        `prediction failed for sample: ${spaced(without)} (petal_width is missing)`,
      ],
      [
        { samples: [{ ...whole, petal_width: "0.3" }] },
        406,
        `prediction failed for sample: ${spaced({ ...whole, petal_width: "0.3" })} (petal_width should be a FLOAT_COLUMN)`,
      ],
      [
        { samples: [{ ...whole, petal_width: true }] },
        406,
        `prediction failed for sample: ${spaced({ ...whole, petal_width: true })} (petal_width should be a FLOAT_COLUMN)`,
      ],
    ] as const) {
      const response = await server.post("/iris/iris-type", body);
      expect([response.status, await response.text()]).toEqual([status, text]);
      expect(response.headers.get("content-type")).toContain("text/plain");
    }
    const more = await server.post("/iris/iris-type", {
      samples: [{ ...whole, petal_width: 0, colour: "blue" }, whole],
    });
    expect(
      ((await more.json()) as { classification_predictions: unknown[] }).classification_predictions,
    ).toHaveLength(2);
  });

  it("is shown by the command line", async () => {
    expect(JSON.parse(server.cli(["get", "-a", "iris", "-o", "json"]).out)).toEqual(await iris.state());
    expect(server.cli(["status", "-a", "iris"]).out).toBe(
      [
        "Raw Columns:           5 ready",
        "Aggregates:            9 ready",
        "Transformed Columns:   5 ready",
        "Training Datasets:     1 ready",
        "Models:                1 ready",
        "APIs:                  1 ready\n",
      ].join("\n"),
    );
    const all = server.cli(["get", "-a", "iris"]).out;
    expect(all).toMatch(/^Raw Columns\n-----------\nNAME +STATUS +AGE\nsepal_length +ready +\d/);
    expect(all).toMatch(/APIs\n----\nNAME +STATUS +LAST UPDATE\niris-type +ready +\d/);
    expect(server.cli(["get", "-a", "iris", "agg", "class_index"]).out).toContain(
      'Value\n-----\n["Iris-setosa","Iris-versicolor","Iris-virginica"]\n',
    );
    expect(server.cli(["get", "-a", "iris", "iris-type"]).out).toContain(
      'Payload:  { "samples": [ { "sepal_length": FLOAT, "sepal_width": FLOAT, "petal_length": FLOAT, "petal_width": FLOAT } ] }',
    );
    expect(server.cli(["logs", "-a", "iris", "model", "dnn"]).out).toMatch(/accuracy = 0\.\d+/);
    expect(server.cli(["logs", "-a", "iris", "petal_width_mean"]).out).toContain("150 rows ingested");
    // Nothing is computed any more, so `logs -f` ends.
    expect(server.cli(["logs", "-a", "iris", "dnn", "-f"])).toMatchObject({ code: 0 });
    const samples = join(iris.directory, "samples.json");
    expect(server.cli(["predict", "-a", "iris", "iris-type", samples]).out).toMatch(
      /^iris-type was last updated on .+ UTC\n\nPredicted class:\nIris-setosa\n$/,
    );
    expect(server.cli(["get"]).out).toMatch(
      /env +application +environment +resources +last update\nlocal +iris +dev +22 ready/,
    );
    const here = (...args: string[]) => server.cli(args, { cwd: iris.directory });
    const guess = "application iris, from app.yaml";
    expect(here("get")).toEqual({
      code: 0,
      out: expect.stringContaining("Training Datasets\n"),
      err: `${guess}; \`quern get --all\` shows everything\n`,
    });
    expect(here("get", "agg", "class_index")).toMatchObject({
      out: expect.stringContaining("Iris-setosa"),
      err: "",
    });
    expect(here("logs", "model", "dnn").out).toMatch(/accuracy = 0\.\d+/);
    expect(here("logs")).toMatchObject({ code: 2, err: expect.stringContaining("name a resource of iris") });
    expect(here("predict", "samples.json").out).toMatch(/Predicted class:\nIris-setosa\n$/);
    expect(here("predict", "iris-type", "samples.json").out).toMatch(/Predicted class:\nIris-setosa\n$/);
    expect(server.cli(["get", "-a", "iris", "nothing"])).toMatchObject({ code: 4 });
    expect(server.cli(["delete", "iris.iris-type"])).toMatchObject({ code: 5 });
    expect(server.cli(["get", "-a", "other"])).toMatchObject({ code: 4 });
  });

  it("reports invalid data, and keeps serving", async () => {
    iris.write({
      file: RAW,
      from: "name: petal_length\n  type: FLOAT_COLUMN\n  min: 0\n  max: 10",
      to: "name: petal_length\n  type: FLOAT_COLUMN\n  required: true\n  max: 6.5",
    });
    const { code, err } = server.cli(["deploy", iris.directory, "--wait"]);
    expect(code).toBe(1);
    expect(err).toContain("Data validation (petal_length <= 6.5) has been violated in 4/150 samples");
    expect(err).toContain(
      "An error occurred, see `quern logs -a iris raw_column petal_length` for more details.",
    );
    expect(server.cli(["status", "-a", "iris"]).out).toMatch(
      /Raw Columns: +4 ready \| 1 error\n(.*\n)*Models: +1 upstream error\nAPIs: +1 update skipped/,
    );
    expect((await predict()).status).toBe(200);
    iris.write({
      file: "iris.csv",
      from: "5.1,3.5,1.4,0.2,Iris-setosa\n4.9",
      to: "5.1,3.5,tall,0.2,Iris-setosa\n4.9",
    });
    expect(server.cli(["deploy", iris.directory, "--wait"]).err).toContain(
      "Could not convert string \"tall\" to 'FLOAT'",
    );
    iris.write({
      file: "implementations/models/dnn.py",
      text: "def create_estimator(run_config, model_config):\n    raise ValueError('no such layer')\n",
    });
    expect(server.cli(["deploy", iris.directory, "--wait"]).err).toContain(
      "model dnn: ValueError: no such layer",
    );
    expect((await predict()).status).toBe(200);
  });

  it("is checked as a whole, with file, line and column", () => {
    iris.write({ file: MODELS, from: "num_steps: 1000", to: "num_steps: 0" });
    expect(server.cli(["check", iris.directory])).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        "resources/models.yaml:16:5: model: dnn: training.num_steps: must be at least 1 (got 0)",
      ),
    });
    iris.write();
    expect(server.cli(["check", iris.directory]).out).toBe(
      `${iris.directory} is valid: iris (Application)\n`,
    );
    rmSync(join(iris.directory, "iris.csv"));
    expect(server.cli(["check", iris.directory]).err).toContain(
      "iris.csv: file does not exist in the application",
    );
    iris.write();
    expect(server.cli(["deploy", iris.directory, "--environment", "prod"]).err).toContain(
      'environment "prod" is not defined; there are dev: choose one with --environment',
    );
  });

  it("is removed completely when it is deleted", async () => {
    expect(server.cli(["delete", "-a", "iris"]).out).toBe("Deployment deleted\n");
    expect((await predict()).status).toBe(404);
    expect(server.cli(["get"]).out).toBe("no apis are deployed\n");
  });
});

/** As Python writes it. */
function spaced(value: unknown): string {
  return JSON.stringify(value).replaceAll(":", ": ").replaceAll(",", ", ");
}
