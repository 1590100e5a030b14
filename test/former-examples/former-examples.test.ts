/**
 * Cortex's example programs, written anew as their users would bring them: a project each, with its `cortex.yaml`. They run on the Python of
 * `scripts/application-python.mjs`, which has their packages. The guide "Coming from Cortex" lists them, and those that run in other tests.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { applicationServer } from "../harness/iris-example.ts";
import { readStream } from "../harness/read-stream.ts";
import { root } from "../harness/server.ts";

/** A program waits for its environment and for scikit-learn; on a quiet machine for some seconds. */
const STARTING_MS = 180_000;
const server = applicationServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

const file = (program: string, name: string) => join(root, "test", "former-examples", program, name);
const deploy = async (program: string) => {
  const { code, out, err } = await server.cliBeside(["deploy", file(program, "cortex.yaml"), "--wait"]);
  expect([code, err], out).toEqual([0, expect.any(String)]);
};
const predict = (api: string, sample: string) => {
  const { code, out, err } = server.cli(["predict", api, sample]);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out) as unknown;
};
const ask = async (path: string, payload: unknown) => {
  const response = await server.post(path, payload);
  return { status: response.status, body: (await response.json()) as never, headers: response.headers };
};
const logOf = (api: string) => server.cli(["logs", api]).out;

interface Flower {
  petal_length: number;
  species: string;
}
/** Flowers that no model was trained with, in an order in which no two neighbours are of one species. */
const flowers = readFileSync(join(root, "examples", "iris", "iris.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Flower)
  .filter((_, at) => at % 2 === 1)
  .map((flower, at, all) => all[(at * 26) % all.length] ?? flower);
const shareOfRight = (answers: string[], asked: Flower[]) =>
  answers.filter((answer, at) => answer === asked[at]!.species).length / asked.length;

const pictures = join(root, "examples", "image-files", "pictures");
const picture = (name: string) => readFileSync(join(pictures, `digit_${name}.pgm`));
const pixelsOf = (name: string) => picture(name).subarray(-64);

describe("an example program of Cortex", () => {
  it(
    "iris-xgboost classifies flowers that it was not trained with",
    async () => {
      await deploy("iris-xgboost");
      expect(predict("iris-xgboost", file("iris-xgboost", "sample.json"))).toEqual({
        species: "virginica",
        probability: expect.any(Number),
      });
      const answers = await Promise.all(flowers.map((flower) => ask("/iris-xgboost", flower)));
      const bodies = answers.map(({ body }) => body as { species: string; probability: number });
      const species = bodies.map((body) => body.species);
      expect(shareOfRight(species, flowers)).toBeGreaterThan(0.9);
      expect(bodies.every(({ probability }) => probability > 1 / 3 && probability <= 1)).toBe(true);
    },
    STARTING_MS,
  );

  it(
    "language-identifier returns the language of a text, and the languages are counted",
    async () => {
      await deploy("language-identifier");
      expect(predict("language-identifier", file("language-identifier", "sample.json"))).toBe("en");
      const texts = {
        en: "I would like to know when the next train is leaving.",
        de: "Ich möchte wissen, wann der nächste Zug nach Hause fährt.",
        fr: "Je voudrais savoir quand part le prochain train pour la maison.",
        es: "Me gustaría saber cuándo sale el próximo tren para la casa.",
      };
      for (const [language, text] of Object.entries(texts))
        expect((await ask("/language-identifier", { text })).body).toBe(language);
      await eventually("the languages are counted", () =>
        /\ben +2\b/.test(server.cli(["get", "language-identifier"]).out),
      );
    },
    STARTING_MS,
  );

  it(
    "multi-model-classifier uses the model in the query, and refuses an unknown one",
    async () => {
      await deploy("multi-model-classifier");
      const sample = (model: string) =>
        readFileSync(file("multi-model-classifier", `sample-${model}.json`), "utf8");
      const by = (model: string, payload: unknown) => ask(`/multi-model-classifier?model=${model}`, payload);
      expect(await by("iris", sample("iris"))).toMatchObject({ body: { model: "iris", label: "setosa" } });
      expect(await by("wine", sample("wine"))).toMatchObject({ body: { model: "wine", label: "class_0" } });
      expect(await by("iris", { input: [6.9, 3.1, 5.4, 2.1] })).toMatchObject({
        body: { label: "virginica" },
      });
      expect(await by("beer", sample("wine"))).toMatchObject({
        status: 400,
        body: { detail: "unknown model: beer; there are iris, wine" },
      });
    },
    STARTING_MS,
  );

  it(
    "server-side-batching predicts for several requests at once, and each gets its own flower",
    async () => {
      await deploy("server-side-batching");
      const answers = await Promise.all(flowers.map((flower) => ask("/server-side-batching", flower)));
      const species = answers.map(({ body }) => body as string);
      expect(shareOfRight(species, flowers)).toBeGreaterThan(0.9);
      expect(predict("server-side-batching", file("server-side-batching", "sample.json"))).toBe("virginica");
      for (const size of [8, 1])
        await eventually(`a batch of ${size} is in the log`, () =>
          logOf("server-side-batching").includes(`a batch of ${size}\n`),
        );
    },
    STARTING_MS,
  );

  it(
    "traffic-splitter shares requests between two models, and a shadow records them all",
    async () => {
      await deploy("traffic-splitter");
      const answers = [];
      for (const flower of flowers) answers.push(await ask("/iris-classifier", flower));
      const species = answers.map(({ body }) => body as string);
      expect(shareOfRight(species, flowers)).toBeGreaterThan(0.9);
      const served = answers.map(({ headers }) => headers.get("x-quern-api"));
      // Four standard deviations about 30 %.
      const ofLinear = served.filter((api) => api === "iris-linear").length;
      expect(Math.abs(ofLinear - 0.3 * flowers.length)).toBeLessThan(16);
      expect(new Set(served)).toEqual(new Set(["iris-linear", "iris-trees"]));
      const recorded = () =>
        [...logOf("request-recorder").matchAll(/recorded petals of ([\d.]+)/g)].map(([, length]) =>
          Number(length),
        );
      await eventually("all are recorded", () => recorded().length === flowers.length);
      expect(recorded().sort()).toEqual(flowers.map((flower) => flower.petal_length).sort());
    },
    STARTING_MS,
  );

  it(
    "text-generator continues a text, and sends each word as it is made",
    async () => {
      await deploy("text-generator");
      const sample = JSON.parse(readFileSync(file("text-generator", "sample.json"), "utf8")) as object;
      const { type, text, isWhole, piecesMs } = await readStream(`${server.baseUrl}/text-generator`, sample);
      expect([type, isWhole]).toEqual(["text/plain; charset=utf-8", true]);
      expect(text).toBe("the model reads a line of text and the model reads a line of");
      expect(piecesMs.length).toBeGreaterThan(1);
    },
    STARTING_MS,
  );

  it(
    "mpg-estimator estimates by a regression, and its predictions are counted",
    async () => {
      await deploy("mpg-estimator");
      const average = predict("mpg-estimator", file("mpg-estimator", "sample.json")) as number;
      const heavy = { cylinders: 8, displacement: 400, horsepower: 190, weight: 4500, acceleration: 11.2 };
      const light = { cylinders: 4, displacement: 95, horsepower: 66, weight: 2050, acceleration: 16.8 };
      const [most, least] = [await ask("/mpg-estimator", light), await ask("/mpg-estimator", heavy)];
      expect(average).toBeCloseTo(27.5, -1);
      expect(most.body).toBeCloseTo(32.5, -1);
      expect(least.body).toBeCloseTo(12.5, -1);
      const metrics = () =>
        (
          JSON.parse(server.cli(["get", "mpg-estimator", "-o", "json"]).out) as {
            metrics: { values?: Record<string, number> };
          }
        ).metrics.values;
      await eventually("three are counted", () => metrics()?.count === 3);
      expect(metrics()!.min).toBeCloseTo(least.body, 6);
      expect(metrics()!.max).toBeCloseTo(most.body, 6);
      expect(metrics()!.avg).toBeCloseTo((average + most.body + least.body) / 3, 6);
    },
    STARTING_MS,
  );

  it(
    "digit-upload recognises the pictures of a form, with the number of guesses that a field gives",
    async () => {
      await deploy("digit-upload");
      const form = new FormData();
      form.set("guesses", "2");
      for (const name of ["1000_is_1", "1001_is_4", "1002_is_0"])
        form.append("picture", new Blob([picture(name)], { type: "image/x-portable-graymap" }), name);
      const response = await server.fetch("/digit-upload", { method: "POST", body: form });
      const answers = (await response.json()) as { file: string; guesses: [number, number][] }[];
      expect(answers.map((answer) => answer.file)).toEqual(["1000_is_1", "1001_is_4", "1002_is_0"]);
      expect(answers.map(({ guesses }) => guesses[0]![0])).toEqual([1, 4, 0]);
      for (const { guesses } of answers) expect(guesses[0]![1]).toBeGreaterThan(guesses[1]![1]);
    },
    STARTING_MS,
  );

  it(
    "license-plate-reader calls another API to recognise the digits",
    async () => {
      await deploy("license-plate-reader");
      const digits = ["1001_is_4", "1009_is_7", "1000_is_1", "1010_is_5"].map(pixelsOf);
      const rows = Array.from({ length: 8 }, (_, row) =>
        Buffer.concat(digits.map((pixels) => pixels.subarray(8 * row, 8 * row + 8))),
      );
      const plate = Buffer.concat([Buffer.from("P5\n32 8\n16\n"), ...rows]);
      const response = await server.fetch("/license-plate-reader", {
        method: "POST",
        body: plate,
        headers: { "content-type": "image/x-portable-graymap" },
      });
      expect([response.status, await response.json()]).toEqual([200, { plate: "4715" }]);
    },
    STARTING_MS,
  );

  it(
    "sum keeps its sums in memory until all batches are done, and writes them once",
    async () => {
      await deploy("sum");
      const sums = join(server.dir, "sums");
      mkdirSync(sums);
      const items = Array.from({ length: 40 }, (_, at) => [at, 10 ** 12, -at, 2 * at]);
      const sample = JSON.parse(readFileSync(file("sum", "sample.json"), "utf8")) as number[][];
      const id = await server.submit("summing-api", {
        workers: 1,
        item_list: { items: [...sample, ...items], batch_size: 3 },
        config: { dest_dir: sums },
      });
      expect(await server.ended("summing-api", id)).toMatchObject({
        status: "status_succeeded",
        batch_metrics: { succeeded: 14, failed: 0 },
      });
      const written = JSON.parse(readFileSync(join(sums, `${id}.json`), "utf8")) as number[];
      const byValue = (a: number, b: number) => a - b;
      expect(written.sort(byValue)).toEqual([111, ...items.map((_, at) => 10 ** 12 + 2 * at)]);
    },
    STARTING_MS,
  );
});
