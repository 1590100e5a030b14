/** A copy of the example application to change, and the server's state of it. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { ApplicationState } from "../../src/contracts/config/applications.ts";
import { root, TestServer } from "./server.ts";

const EXAMPLES = join(root, "examples");
export const SETOSA = readFileSync(join(EXAMPLES, "iris-app", "samples.json"), "utf8");

/** The prediction for it, whatever estimator was trained. */
export const SETOSA_PREDICTION = {
  class_ids: ["0"],
  classes: ["MA=="],
  logits: [expect.any(Number), expect.any(Number), expect.any(Number)],
  probabilities: [expect.any(Number), expect.any(Number), expect.any(Number)],
  predicted_class: 0,
  predicted_class_reversed: "Iris-setosa",
};

export const APPLICATION_PYTHON = join(root, ".servers", "python", "bin", "python");

/** With the packages of applications, so that nothing is installed. */
export function applicationServer(env: Record<string, string> = {}): TestServer {
  return new TestServer({ QUERN_PYTHON: APPLICATION_PYTHON, ...env });
}

/** Trained and loaded within moments, because it imports only NumPy: for tests that are not about estimators. */
const LIGHT_MODEL = `import numpy


class NearestMean:
    def fit(self, rows, target):
        self.means = numpy.array([rows[target == each].mean(axis=0) for each in numpy.unique(target)])

    def predict_proba(self, rows):
        nearness = 1 / (1e-9 + ((rows[:, None] - self.means) ** 2).sum(axis=2))
        return nearness / nearness.sum(axis=1, keepdims=True)

    def predict(self, rows):
        return self.predict_proba(rows).argmax(axis=1)


def create_estimator(run_config, model_config):
    pass
    return NearestMean()
`;

/** The example with that model. `training` is Python code of one or more lines that runs before the estimator is made. */
export const lightModel = (training = "pass"): Edit => ({
  file: "implementations/models/dnn.py",
  text: LIGHT_MODEL.replace("    pass\n", `    ${training}\n`),
});

export type Edit = { file: string; from: string; to: string } | { file: string; text: string };

export class IrisExample {
  readonly directory: string;
  private readonly server: TestServer;

  private readonly example: string;

  constructor(server: TestServer, example = "iris-app") {
    this.server = server;
    this.example = join(EXAMPLES, example);
    this.directory = join(server.dir, example);
  }

  /** The example as it is, but for these edits. */
  write(...edits: Edit[]): void {
    rmSync(this.directory, { recursive: true, force: true });
    cpSync(this.example, this.directory, { recursive: true });
    for (const edit of edits) {
      const file = join(this.directory, edit.file);
      if ("text" in edit) writeFileSync(file, edit.text);
      else {
        const text = readFileSync(file, "utf8");
        if (!text.includes(edit.from)) throw new Error(`${edit.file} has no ${edit.from}`);
        writeFileSync(file, text.replaceAll(edit.from, edit.to));
      }
    }
  }

  /** Returns the output of the command line; throws if the command fails. */
  deploy(...args: string[]): string {
    const { code, out, err } = this.server.cli(["deploy", this.directory, "--wait", ...args]);
    if (code !== 0) throw new Error(`deploy failed: ${out}${err}`);
    return out.trim();
  }

  /** By HTTP, because tests ask often. On a new connection, because a killed gateway breaks the others. */
  async state(): Promise<ApplicationState> {
    const token = readFileSync(join(this.server.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    const response = await this.server.fetch("/-/applications/iris?values=true", { headers });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`the application's state: ${response.status} ${text}`);
    return JSON.parse(text) as ApplicationState;
  }

  /** The status of a resource; undefined while the application or the controller is not there. */
  async statusOf(name: string): Promise<string | undefined> {
    const state = await this.state().catch(() => undefined);
    return state?.resources.find((resource) => resource.name === name)?.status;
  }

  async resource(name: string): Promise<ApplicationState["resources"][number]> {
    return (await this.state()).resources.find((resource) => resource.name === name)!;
  }

  /** The names of resources that were computed after `time`, without APIs. */
  async computedAfter(time: string): Promise<string[]> {
    return (await this.state()).resources
      .filter(
        ({ started_time }) => started_time !== undefined && Date.parse(started_time) >= Date.parse(time),
      )
      .map(({ name }) => name)
      .sort();
  }
}
