/**
 * The places for the data of an application: stores, directories of files, CSV and Parquet; and conflicts over its
 * address.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import {
  APPLICATION_PYTHON,
  applicationServer,
  type Edit,
  IrisExample,
  lightModel,
  SETOSA,
} from "../../harness/iris-example.ts";
import { root, type TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";

const CSV = readFileSync(join(root, "examples", "iris-app", "iris.csv"), "utf8");
const COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width", "class"];

function at(path: string): Edit {
  return { file: "resources/environments.yaml", from: "path: iris.csv", to: `path: ${path}` };
}

describe.runIf(isS3Installed)("the data of an application", () => {
  let s3: TestS3;
  let server: TestServer;
  let iris: IrisExample;
  beforeAll(async () => {
    s3 = await startS3();
    server = applicationServer(s3.env);
    iris = new IrisExample(server);
    await server.start();
    const lines = CSV.trim().split("\n");
    await s3.put("iris/whole.csv", CSV);
    await s3.put("iris/parts/part-0.csv", `${lines.slice(0, 80).join("\n")}\n`);
    await s3.put("iris/parts/part-1.csv", `${lines.slice(80).join("\n")}\n`);
    await s3.put("iris/parts/_SUCCESS", "");
    await s3.put("iris/partsandmore.csv", "no,line,of,these,columns\n");
    await s3.put("iris/data.parquet", parquet(join(server.dir, "iris.parquet")));
  });
  afterAll(async () => {
    await server.stop();
    await s3.stop();
  });

  /** Without blocking this process, because the store is reached through it. */
  const deploy = (...options: string[]) => server.deployBeside(iris.directory, ...options);
  const mean = async () => (await iris.resource("petal_width_mean")).value;
  const rowsIngested = () =>
    server
      .cli(["logs", "-a", "iris", "class"])
      .out.match(/\d+ rows ingested/g)!
      .at(-1);

  it.each([
    ["an object", `s3://bucket/iris/whole.csv`],
    ["an object, as Spark calls it", `s3a://bucket/iris/whole.csv`],
    ["a directory of files", `s3://bucket/iris/parts`],
    ["a directory with a slash", `s3a://bucket/iris/parts/`],
  ])("may be %s", async (_, path) => {
    iris.write(lightModel(), at(path));
    await deploy();
    expect(rowsIngested()).toBe("150 rows ingested");
    expect(await mean()).toBeCloseTo(1.1986666581, 8);
  });

  it("may be Parquet", async () => {
    const schema = COLUMNS.map(
      (name) => `{parquet_column_name: ${name.toUpperCase()}, raw_column_name: ${name}}`,
    );
    iris.write(lightModel(), {
      file: "resources/environments.yaml",
      text: `- kind: environment\n  name: prod\n  data:\n    type: parquet\n    path: s3://bucket/iris/data.parquet\n    schema: [${schema.join(", ")}]\n`,
    });
    await deploy("--environment", "prod");
    expect(rowsIngested()).toBe("150 rows ingested");
    expect(await mean()).toBeCloseTo(1.1986666581, 8);
  });

  it("is read again only on refresh", async () => {
    iris.write(lightModel(), at("s3://bucket/iris/whole.csv"));
    await deploy();
    const before = await mean();
    await s3.put("iris/whole.csv", CSV.replaceAll(",0.2,Iris-setosa", ",0.3,Iris-setosa"));
    expect(iris.deploy()).toBe("Deployment is up-to-date");
    expect(await mean()).toBe(before);
    server.cli(["refresh", "-a", "iris"]);
    await deploy();
    expect(await mean()).toBeGreaterThan(before as number);
  });

  it("is read once an unreachable store is back", async () => {
    s3.kill();
    server.cli(["refresh", "-a", "iris"]);
    await eventually("it is said in the log", () =>
      /trying again in/.test(server.cli(["logs", "-a", "iris", "class"]).out),
    );
    await s3.restart();
    await deploy();
    expect((await iris.resource("dnn")).status).toBe("ready");
  });

  it("is reported if it does not exist", async () => {
    iris.write(lightModel(), at("s3://bucket/nothing.csv"));
    await expect(deploy()).rejects.toThrow(
      "raw_column sepal_length: there is no data at s3://bucket/nothing.csv: neither a file nor a directory",
    );
    iris.write(lightModel(), at("s3://no-such-bucket/iris.csv"));
    await expect(deploy()).rejects.toThrow(/no-such-bucket/);
    iris.write(lightModel(), at("file:///etc/passwd"));
    await expect(deploy()).rejects.toThrow(/--allow-local-root/);
  });
});

describe("the address of an application's API", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("is refused if another API has it, and refused to other APIs if an application has it", async () => {
    const files = {
      "predictor.py":
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self): return 1\n",
      "quern.yaml": "- name: iris\n  predictor: {path: predictor.py}\n",
    };
    server.deploy(files);
    iris.write(lightModel());
    expect(server.cli(["deploy", iris.directory])).toMatchObject({
      code: 1,
      err: expect.stringContaining("/iris/iris-type conflicts with iris at /iris; delete that API"),
    });
    server.cli(["-y", "delete", "iris"]);
    iris.deploy();
    expect(() => server.deploy(files)).toThrow("/iris conflicts with iris.iris-type at /iris/iris-type");
    expect((await server.post("/iris/iris-type", SETOSA)).status).toBe(200);
  });
});

/** The same rows, with names in capitals. */
function parquet(path: string): Buffer {
  const source = join(root, "examples", "iris-app", "iris.csv");
  const names = COLUMNS.map((name, place) => `column${place} AS ${name.toUpperCase()}`).join(", ");
  const query = `COPY (SELECT ${names} FROM read_csv('${source}', header = false)) TO '${path}' (FORMAT parquet)`;
  execFileSync(APPLICATION_PYTHON, ["-c", `import duckdb; duckdb.sql(${JSON.stringify(query)})`]);
  return readFileSync(path);
}
