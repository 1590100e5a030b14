/** Legacy declarative applications, as far as this release goes: they are checked. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IRIS_APP } from "../harness/iris-app.ts";
import { TestServer } from "../harness/server.ts";

describe("an application's directory", () => {
  const server = new TestServer();
  const directory = join(server.dir, "iris");
  const write = (files: Record<string, string>) => {
    rmSync(directory, { recursive: true, force: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
  };
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("is checked as a whole", () => {
    write(IRIS_APP);
    expect(server.cli(["check", directory])).toMatchObject({
      code: 0,
      out: `${directory} is valid: iris (Application)\n`,
    });
    // Without a name, in the directory itself.
    expect(server.cli(["check"], { cwd: directory })).toMatchObject({
      code: 0,
      out: "app.yaml is valid: iris (Application)\n",
    });
  });

  it("is told all that is wrong with it, with file, line and column", () => {
    write({
      ...IRIS_APP,
      "resources/models.yaml": IRIS_APP["resources/models.yaml"]!.replace(
        "model_name: dnn",
        "model_name: rnn",
      ).replace("num_steps: 1000", "num_steps: 0"),
    });
    const { code, err } = server.cli(["check", directory]);
    expect(code).toBe(1);
    expect(err).toContain(
      "resources/models.yaml:8:14: model: dnn: training.num_steps: must be at least 1 (got 0)",
    );
    write({
      ...IRIS_APP,
      "resources/models.yaml": IRIS_APP["resources/models.yaml"]!.replace(
        "model_name: dnn",
        "model_name: rnn",
      ),
    });
    expect(server.cli(["check", directory]).err).toContain(
      'resources/models.yaml:12:3: api: iris-type: model_name: model "rnn" is not defined',
    );
  });

  it("is not deployed yet, and says so", () => {
    write(IRIS_APP);
    expect(server.cli(["deploy", directory])).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        "iris is a declarative application, which this release can check (`quern check`) and not deploy yet",
      ),
    });
  });
});
