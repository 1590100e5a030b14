/** Every example runs, on real data, through the command line. `iris` is the demo, which CI runs too. */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";

const examples = join(root, "examples");
const server = new TestServer({ QUERN_ALLOW_LOCAL_ROOT: examples });
beforeAll(() => server.start());
afterAll(() => server.stop());

const example = (name: string) => join(examples, name);
const results = join(server.dir, "results");
const run = async (api: string, file: string, inputs: string) => {
  const job = readFileSync(file, "utf8")
    .replaceAll("/path/to/results", results)
    .replaceAll("/path/to/", inputs);
  const { code, out, err } = server.cli(["job", "submit", api, "-"], { input: job });
  expect([code, err]).toEqual([0, ""]);
  return { id: out.trim(), ended: await server.ended(api, out.trim()) };
};
const deploy = (name: string, ...args: string[]) =>
  expect(server.cli(["deploy", example(name), ...args])).toMatchObject({ code: 0 });

describe("the example", () => {
  it("image-files recognises digits in pictures, without the excluded ones", async () => {
    mkdirSync(results, { recursive: true });
    deploy("image-files");
    const { id, ended } = await run(
      "digits",
      join(example("image-files"), "job.json"),
      `${example("image-files")}/`,
    );
    expect(ended.status).toBe("status_succeeded");
    const answers = readdirSync(results)
      .filter((name) => name.startsWith(id) && name.endsWith(".json"))
      .flatMap(
        (name) => JSON.parse(readFileSync(join(results, name), "utf8")) as { path: string; digit: number }[],
      );
    const truth = (path: string) => Number(/_is_(\d)\.pgm$/.exec(path)![1]);
    expect(answers.every(({ path }) => truth(path) !== 0)).toBe(true);
    expect(answers.length).toBe(
      readdirSync(join(example("image-files"), "pictures")).filter((name) => /_is_[1-9]\.pgm$/.test(name))
        .length,
    );
    const right = answers.filter(({ path, digit }) => truth(path) === digit).length;
    expect(right / answers.length).toBeGreaterThan(0.85);
    expect(server.cli(["logs", "digits", id]).out).toContain(`files of results in ${results}`);
  });

  it("sum adds up the parts of all batches, once, at the end", async () => {
    deploy("sum");
    const file = join(example("sum"), "job.json");
    const { id, ended } = await run("sum", file, `${example("iris")}/`);
    expect(ended.status).toBe("status_succeeded");
    const lines = readFileSync(join(example("iris"), "iris.jsonl"), "utf8")
      .trim()
      .split("\n");
    const flowers = lines.map((line) => JSON.parse(line) as { petal_length: number });
    const total = JSON.parse(readFileSync(join(results, `${id}.json`), "utf8")) as {
      count: number;
      sum: number;
    };
    expect(total.count).toBe(flowers.length);
    expect(total.sum).toBeCloseTo(
      flowers.reduce((sum, flower) => sum + flower.petal_length, 0),
      6,
    );
  });

  it("iris-sklearn answers with a model from a package", async () => {
    deploy("iris-sklearn");
    const flowers = readFileSync(join(example("iris-sklearn"), "flowers.json"), "utf8");
    const ask = () => server.post("/iris-sklearn", flowers);
    await eventually("it is installed and trained", async () => (await ask()).status === 200, 280_000);
    const answer = await ask();
    expect(await answer.json()).toEqual(["setosa", "virginica"]);
    expect(server.cli(["logs", "iris-sklearn"]).out).toMatch(/trained on 150 flowers: 0\.9\d+ of them right/);
  }, 300_000);
});
