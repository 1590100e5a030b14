/** Applications with TensorFlow's estimators, as they were written for Cortex. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { FRAUD_APP, INSURANCE_APP } from "../harness/former-apps.ts";
import { IrisExample, SETOSA, SETOSA_PREDICTION } from "../harness/iris-example.ts";
import { killAll } from "../harness/processes.ts";
import { TestServer } from "../harness/server.ts";

const MODELS = "resources/models.yaml";

/** Training takes 20 s on an idle machine. */
const TRAINING_MS = 240_000;

describe("the iris application with a DNNClassifier", () => {
  const server = new TestServer({ QUERN_PYTHON: process.env.QUERN_TEST_TENSORFLOW });
  const iris = new IrisExample(server, "iris-app-tensorflow");
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it(
    "is deployed, trained and predicts, with every field of the original",
    async () => {
      iris.write();
      const started = Date.now();
      expect(iris.deploy()).toBe("Deployment started");
      const response = await server.post("/iris/iris-type", SETOSA);
      expect(Date.now() - started).toBeLessThan(60_000);
      const answer = (await response.json()) as { classification_predictions: Record<string, unknown>[] };
      expect(answer.classification_predictions).toEqual([SETOSA_PREDICTION]);
      expect((await iris.resource("dnn")).metrics!.accuracy).toBeGreaterThan(0.9);
      const log = server.cli(["logs", "-a", "iris", "dnn"]).out;
      expect(log).toMatch(/loss = [\d.]+, step = 0/);
      expect(log).toMatch(/accuracy = 0\.\d+/);
    },
    TRAINING_MS,
  );

  it(
    "resumes from its checkpoint when the training is killed",
    async () => {
      iris.write({
        file: MODELS,
        from: "    num_steps: 1000",
        to: "    num_steps: 6000\n    save_checkpoints_steps: 500",
      });
      expect(server.cli(["deploy", iris.directory]).out).toBe("Deployment started\n");
      const { resource_id } = await iris.resource("dnn");
      const directory = join(server.dataDir, "applications", "iris", resource_id, "model_dir");
      const checkpoints = () => {
        return existsSync(directory)
          ? readdirSync(directory).filter((name) => /ckpt-[1-9]\d*\.index$/.test(name))
          : [];
      };
      await eventually("there is a checkpoint", () => checkpoints().length > 0);
      killAll(server.stages());
      await eventually("it is trained", async () => (await iris.statusOf("dnn")) === "ready", 50_000);
      expect(server.cli(["logs", "-a", "iris", "dnn"]).out).toMatch(
        /Restoring parameters from .*model\.ckpt-[1-9]/,
      );
      expect((await iris.resource("dnn")).metrics!.global_step).toBe(6000);
    },
    TRAINING_MS,
  );

  it(
    "serves a regression with a normalized target",
    async () => {
      iris.write(
        { file: MODELS, from: "type: classification", to: "type: regression" },
        { file: MODELS, from: "target_column: class_indexed", to: "target_column: petal_width_normalized" },
        { file: MODELS, from: "    - petal_width_normalized\n", to: "" },
        {
          file: "implementations/models/dnn.py",
          text: `import tensorflow as tf


def create_estimator(run_config, model_config):
    columns = [tf.feature_column.numeric_column(column["name"]) for column in model_config["feature_columns"]]
    assert model_config["target_column"]["type_tf"] == tf.float32
    return tf.estimator.LinearRegressor(columns, optimizer=lambda: tf.keras.optimizers.legacy.Adagrad(0.1), config=run_config)
`,
        },
      );
      iris.deploy();
      const response = await server.post("/iris/iris-type", SETOSA);
      const {
        regression_predictions: [prediction],
      } = (await response.json()) as {
        regression_predictions: [
          { predictions: number[]; predicted_value: number; predicted_value_reversed: number },
        ];
      };
      expect(Object.keys(prediction).sort()).toEqual([
        "predicted_value",
        "predicted_value_reversed",
        "predictions",
      ]);
      expect(prediction.predictions).toEqual([prediction.predicted_value]);
      expect(prediction.predicted_value_reversed).toBeCloseTo(0.3, 0);
      expect(Object.keys((await iris.resource("dnn")).metrics!)).toEqual(
        expect.arrayContaining(["RMSE", "MAE"]),
      );
    },
    TRAINING_MS,
  );
});

describe("Cortex's other examples", () => {
  const server = new TestServer({ QUERN_PYTHON: process.env.QUERN_TEST_TENSORFLOW });
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  const predict = async (address: string, samples: object[]) => {
    const answer = (await (await server.post(address, { samples })).json()) as Record<
      string,
      Record<string, number>[]
    >;
    return Object.values(answer)[0]!;
  };

  it(
    "weigh a rare class by a column that Spark's transformer makes for training",
    async () => {
      await server.deployBeside(FRAUD_APP);
      const sample = (sign: number) => ({ time: 700, v1: sign, v2: sign, v3: sign, amount: 50 });
      const answers = await predict("/fraud/fraud", [sample(2.4), sample(-0.2)]);
      expect(answers.map((answer) => answer.predicted_class)).toEqual([1, 0]);
    },
    TRAINING_MS,
  );

  it(
    "estimate the cost of an insurance by categories, buckets and an aggregated vocabulary",
    async () => {
      await server.deployBeside(INSURANCE_APP);
      const customer = { age: 40, sex: "male", bmi: 31.5, children: 2, region: "northwest" };
      const [smoker, other] = await predict("/insurance/cost", [
        { ...customer, smoker: "yes" },
        { ...customer, smoker: "no" },
      ]);
      const more = smoker!.predicted_value_reversed! - other!.predicted_value_reversed!;
      expect(more).toBeGreaterThan(15_000);
    },
    TRAINING_MS,
  );
});
