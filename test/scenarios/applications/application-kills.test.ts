/** An application whose pipeline is killed at every stage, in each of its processes: it resumes there. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApplicationState } from "../../../src/contracts/config/applications.ts";
import { eventually } from "../../harness/eventually.ts";
import { applicationServer, type Edit, IrisExample, lightModel, SETOSA } from "../../harness/iris-example.ts";
import { killAll } from "../../harness/processes.ts";
import { root } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";

/** Records each call, and ends once the test releases it. */
function held(log: string, hold: string, name: string): string {
  const lines = [
    "import os, time",
    `with open(${JSON.stringify(log)}, "a") as log: log.write("${name}\\n")`,
    `while os.path.exists(${JSON.stringify(hold)}): time.sleep(0.02)`,
  ];
  return lines.join("\n    ");
}

describe("a pipeline that is killed", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  const log = join(server.dir, "computed.txt");
  const holdFile = (name: string) => join(server.dir, `hold-${name}`);
  /** From now on it does not end before `letGo`. */
  const hold = (name: string) => {
    writeFileSync(log, "");
    writeFileSync(holdFile(name), "");
  };
  const letGo = (name: string) => rmSync(holdFile(name));
  const edits: Edit[] = [
    {
      file: "resources/slow.yaml",
      text: `- kind: aggregator
  name: slow_sum
  output_type: FLOAT
  inputs: {columns: {col: FLOAT_COLUMN}}
- kind: aggregate
  name: slow
  aggregator: slow_sum
  inputs: {columns: {col: petal_width}}
`,
    },
    lightModel(held(log, holdFile("dnn"), "dnn")),
  ];
  const aggregator = `def aggregate_python(data, columns, args):
    ${held(log, holdFile("slow"), "slow")}
    return data.sum(columns["col"]).fetchall()[0][0]
`;
  const counts = () => readFileSync(log, "utf8").trim().split("\n").sort();
  /** And in the user's own code. */
  const isRunning = (name: string, status: string) =>
    eventually(
      `${name} is ${status}`,
      async () => counts().includes(name) && (await iris.statusOf(name)) === status,
    );
  const isReady = () =>
    eventually(
      "everything is ready",
      async () =>
        (await iris.state().catch(() => undefined))?.resources.every(({ status }) => status === "ready") ===
        true,
      100_000,
    );
  /** The name of each finished resource, and when its computation began. */
  const done = async () =>
    (await iris.state()).resources
      .filter(({ status, kind }) => status === "ready" && kind !== "api")
      .map(({ name, started_time }) => [name, started_time]);

  beforeAll(async () => {
    await server.start();
    iris.write(...edits);
    const directory = join(iris.directory, "implementations", "aggregators");
    mkdirSync(directory);
    writeFileSync(join(directory, "slow_sum.py"), aggregator);
    iris.deploy();
  });
  afterAll(() => server.stop());

  const STAGES = [
    { name: "slow", status: "aggregating", stage: ["slow", "slow", "dnn"], other: ["slow", "dnn"] },
    { name: "dnn", status: "training", stage: ["slow", "dnn", "dnn"], other: ["slow", "dnn"] },
  ];

  it.each(STAGES)(
    "continues when its process is killed while $name is $status",
    async ({ name, status, stage }) => {
      hold(name);
      server.cli(["refresh", "-a", "iris"]);
      await isRunning(name, status);
      const before = await done();
      killAll(server.stages());
      letGo(name);
      await isReady();
      expect(await done()).toEqual(expect.arrayContaining(before));
      expect(counts()).toEqual([...stage].sort());
      expect(server.cli(["logs", "-a", "iris", "dnn"]).out).not.toContain("Traceback");
    },
  );

  it.each(STAGES)(
    "is awaited by the next controller when the controller is killed while $name is $status",
    async ({ name, status, other }) => {
      hold(name);
      server.cli(["refresh", "-a", "iris"]);
      await isRunning(name, status);
      const before = await done();
      process.kill(server.child("controller"), "SIGKILL");
      await eventually("the next controller answers", async () => (await iris.statusOf(name)) !== undefined);
      letGo(name);
      await isReady();
      expect(await done()).toEqual(expect.arrayContaining(before));
      expect(counts()).toEqual([...other].sort());
    },
  );

  it.each(STAGES)(
    "continues when everything is killed while $name is $status",
    async ({ name, status, stage }) => {
      hold(name);
      server.cli(["refresh", "-a", "iris"]);
      await isRunning(name, status);
      const before = await done();
      const pids = [
        server.parent!.pid!,
        server.child("controller"),
        server.child("gateway"),
        ...server.stages(),
      ];
      killAll(pids);
      letGo(name);
      await eventually("the server is gone", () => server.parent!.signalCode !== null);
      await server.start();
      await isReady();
      expect(await done()).toEqual(expect.arrayContaining(before));
      expect(counts()).toEqual([...stage].sort());
      expect((await server.post("/iris/iris-type", SETOSA)).status).toBe(200);
    },
  );

  it("fails with the reason when it is killed repeatedly, and starts again with the next deployment", async () => {
    hold("dnn");
    server.cli(["refresh", "-a", "iris"]);
    for (let kills = 0; kills < 3; kills++) {
      await isRunning("dnn", "training");
      writeFileSync(log, "");
      const pids = server.stages();
      killAll(pids);
      await eventually("they are gone", () => !server.stages().some((pid) => pids.includes(pid)));
    }
    letGo("dnn");
    await eventually("it has failed", async () => (await iris.statusOf("dnn")) === "error");
    expect((await iris.resource("dnn")).reason).toMatch(/^the process was killed by SIGKILL/);
    expect((await iris.resource("iris-type")).status).toBe("update skipped");
    expect(iris.deploy()).toBe("Deployment started");
  });

  it("is replaced by another deployment only with --force", async () => {
    hold("slow");
    server.cli(["refresh", "-a", "iris"]);
    await isRunning("slow", "aggregating");
    expect(server.cli(["refresh", "-a", "iris"])).toMatchObject({
      code: 5,
      err: "error: Another deployment is running, use --force to override\n",
    });
    iris.write(...edits.slice(0, 1).map((edit) => ({ ...edit, text: "" }) as Edit));
    expect(server.cli(["deploy", iris.directory]).err).toContain(
      "Another deployment is running, use --force to override",
    );
    expect(iris.deploy("--force")).toBe("Running deployment stopped, new deployment started");
    letGo("slow");
    expect(server.stages()).toEqual([]);
  });
});

describe("a data stage that is killed", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  /** Each step over them takes long enough to be killed in it. */
  const ROWS = 1_000_000;
  beforeAll(async () => {
    await server.start();
    const row = readFileSync(join(root, "examples", "iris-app", "iris.csv"), "utf8").split("\n", 1)[0]!;
    server.writeInput("many.csv", `${`${row}\n`.repeat(ROWS)}7.0,3.2,4.7,1.4,Iris-versicolor\n`);
    iris.write(
      lightModel(),
      { file: "resources/environments.yaml", from: "iris.csv", to: `file://${server.inputs}/many.csv` },
      {
        file: "resources/slowly.yaml",
        text: `- kind: transformer
  name: slowly
  path: slowly.py
  output_type: FLOAT_COLUMN
  inputs: {columns: {num: FLOAT_COLUMN}}
- kind: transformed_column
  name: looked-at
  transformer: slowly
  inputs: {columns: {num: petal_width}}
`,
      },
      {
        file: "slowly.py",
        text: "import time\n\ndef transform_python(sample, args):\n    time.sleep(0.01)\n    return sample['num']\n",
      },
    );
  });
  afterAll(() => server.stop());

  it.each([
    ["sepal_length", "ingesting"],
    ["looked-at", "transforming"],
    ["dnn/training_dataset", "generating"],
  ])("continues when it is killed while %s is %s", async (name, status) => {
    let before: ApplicationState["resources"] = [];
    let killed: number[] = [];
    // It may finish before it is killed.
    while (killed.length === 0) {
      server.cli(["delete", "-a", "iris"]);
      expect(server.cli(["deploy", iris.directory]).out).toBe("Deployment started\n");
      await eventually(`${name} is ${status}`, async () => (await iris.statusOf(name)) === status);
      const pids = server.stages();
      killAll(pids);
      before = (await iris.state()).resources.filter((resource) => resource.status === "ready");
      if (!before.some((resource) => resource.name === name)) killed = pids;
    }
    await eventually("it was begun again", () => server.stages().some((pid) => !killed.includes(pid)));
    await eventually(
      "the data is there",
      async () => (await iris.statusOf("dnn/training_dataset")) === "ready",
      50_000,
    );
    for (const { name: ready, started_time } of before)
      expect([ready, (await iris.resource(ready)).started_time]).toEqual([ready, started_time]);
  });
});

describe("a model's reservation", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  beforeAll(() => server.start({}, ["--gpus", "7", "--cpus", "2"]));
  afterAll(() => server.stop());
  const wants = (compute: string): Edit => ({
    file: "resources/models.yaml",
    from: "  aggregates: [class_index]",
    to: `  aggregates: [class_index]\n  compute: {${compute}}`,
  });
  const says = lightModel("import os\n    print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'))");

  it("gives it the requested GPUs, and no others", () => {
    iris.write(wants("gpu: 1"), says);
    iris.deploy();
    expect(server.cli(["logs", "-a", "iris", "dnn"]).out).toMatch(/sees 7$/m);
  });

  it("is refused if the machine does not have as many", () => {
    iris.write(wants("gpu: 2"), lightModel());
    expect(server.cli(["deploy", iris.directory]).err).toContain(
      "model: dnn: compute.gpu: 2 requested, but this server offers 1",
    );
  });

  it("waits until it fits", async () => {
    const another: Edit = { file: "resources/models.yaml", from: "[4, 2]", to: "[5, 2]" };
    iris.write(wants("cpu: 64"), another, lightModel());
    expect(server.cli(["deploy", iris.directory]).out).toBe("Deployment started\n");
    await eventually("it waits", async () => (await iris.statusOf("dnn")) === "compute unavailable");
    expect((await iris.resource("dnn")).reason).toMatch(
      /^each takes 64 CPU; .* of 2 CPU and .* are free(; reserved by .*)?; it can never fit on this server: lower compute.cpu, or start the server with a larger --cpus$/,
    );
    iris.write(wants("cpu: 1"), another, lightModel());
    expect(iris.deploy("--force")).toMatch(/^Running deployment stopped, new deployment /);
  });
});

describe("an estimator's code", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it.each([
    ["ends the process", "import os; os._exit(0)", "the process exited with code 0; its last output: "],
    ["exits with a message", "import sys; sys.exit('no more')", "SystemExit: no more"],
    ["crashes", "import ctypes; ctypes.string_at(0)", "the process was killed by SIGSEGV"],
    [
      "exceeds its memory",
      "import time; hog = bytearray(700 << 20); hog[::4096] = b'1' * len(hog[::4096]); time.sleep(9)",
      "over its compute.mem of 500 MiB",
    ],
    ["is not valid Python", "def (", "SyntaxError: invalid syntax"],
  ])("fails with a reason if it %s", (_, code, reason) => {
    iris.write(
      {
        file: "implementations/models/dnn.py",
        text: `print("the last word")\n\ndef create_estimator(run_config, model_config):\n    ${code}\n`,
      },
      {
        file: "resources/models.yaml",
        from: "  aggregates: [class_index]",
        to: "  aggregates: [class_index]\n  compute: {mem: 500Mi}",
      },
    );
    const { code: exitCode, err } = server.cli(["deploy", iris.directory, "--wait"]);
    expect(exitCode).toBe(1);
    expect(err).toContain("error: model dnn: ");
    expect(err).toContain(reason);
    expect(server.stages()).toEqual([]);
  });
});

describe("an API whose model is trained again", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("loses no request, and never returns to the previous model", async () => {
    iris.write(lightModel());
    iris.deploy();
    const ids = [(await iris.resource("iris-type")).resource_id];
    const load = new SteadyLoad(`${server.baseUrl}/iris/iris-type`, 8, JSON.parse(SETOSA), 20);
    for (const units of ["[5, 2]", "[6, 2]", "[7, 2]"]) {
      iris.write(lightModel(), { file: "resources/models.yaml", from: "[4, 2]", to: units });
      await server.deployBeside(iris.directory);
      ids.push((await iris.resource("iris-type")).resource_id);
    }
    const answers = await load.stop();
    expect(new Set(ids).size).toBe(4);
    expect(answers.length).toBeGreaterThan(500);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const served = answers
      .sort((a, b) => a.endedMs - b.endedMs)
      .map(({ body }) => ids.indexOf((JSON.parse(body) as { resource_id: string }).resource_id));
    expect(new Set(served)).toEqual(new Set([0, 1, 2, 3]));
    // During a rollout both versions answer; versions of two different rollouts never do.
    let latest = 0;
    for (const id of served) {
      latest = Math.max(latest, id);
      expect(latest - id).toBeLessThanOrEqual(1);
    }
    // Four trainings, which let requests go first.
  }, 240_000);
});
