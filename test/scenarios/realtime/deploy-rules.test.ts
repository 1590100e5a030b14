/**
 * The effects of a deployment (docs/contract/configuration.md and jobs.md): which replicas restart, and what happens to
 * requests.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { applicationServer } from "../../harness/iris-example.ts";
import { OBEDIENT } from "../../harness/projects.ts";

const NUMBERS = `
import numpy
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        return {"float": numpy.float32(0.5), "integer": numpy.int64(7), "matrix": numpy.array([[1, 2], [3, 4]])}
`;

describe("a deployment", () => {
  const server = applicationServer();
  /** Each entry is the rest of an API's configuration, by its name. */
  const files = (entries: Record<string, string>, more: Record<string, string> = {}) => ({
    "quern.yaml": Object.entries(entries)
      .map(([name, fields]) => `- name: ${name}\n${fields || "  predictor: {path: p.py}\n"}`)
      .join(""),
    "p.py": OBEDIENT,
    "numbers_.py": NUMBERS,
    ...more,
  });
  const pidOf = async (api: string) => (await server.post(`/${api}`, { do: "pid" })).json();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it.each<[string, boolean, string]>([
    ["autoscaling", false, "  predictor: {path: p.py}\n  autoscaling: {max_replicas: 3}\n"],
    ["networking", false, "  predictor: {path: p.py}\n  networking: {auth: none}\n"],
    ["update_strategy", false, "  predictor: {path: p.py}\n  update_strategy: {max_surge: 2}\n"],
    ["predictor", true, "  predictor: {path: p.py, config: {a: 1}}\n"],
    ["compute", true, "  predictor: {path: p.py}\n  compute: {cpu: 300m}\n"],
    ["monitoring", true, "  predictor: {path: p.py}\n  monitoring: {model_type: classification}\n"],
  ])("that changes %s restarts replicas: %s", async (_, restarts, fields) => {
    server.deploy(files({ changing: "" }));
    const before = await pidOf("changing");
    server.deploy(files({ changing: fields }));
    expect((await pidOf("changing")) !== before).toBe(restarts);
  });

  it("of a directory with one file more updates each of its APIs", async () => {
    server.deploy(files({ one: "", two: "" }));
    const before = await Promise.all([server.api("one"), server.api("two")]);
    server.deploy(files({ one: "", two: "" }, { "labels.txt": "a" }));
    const after = await Promise.all([server.api("one"), server.api("two")]);
    for (const i of [0, 1]) expect(after[i]!.api_id).not.toBe(before[i]!.api_id);
  });

  it("may be deleted: requests in flight finish", async () => {
    server.deploy(files({ leaving: "" }));
    const [begun, gate] = [join(server.dir, "begun"), join(server.dir, "gate")];
    const answer = server.post("/leaving", { id: 5, do: "await", path: gate, touch: begun });
    await eventually("the request has begun", () => existsSync(begun));
    const deletion = server.cliBeside(["delete", "leaving", "--force"]);
    await eventually("it takes no more", async () => (await server.fetch("/leaving")).status === 404);
    writeFileSync(gate, "");
    expect([(await answer).status, await (await answer).json()]).toEqual([200, 5]);
    expect((await deletion).code).toBe(0);
  });

  it("returns numpy numbers and arrays as JSON", async () => {
    server.deploy(files({ numbers: "  predictor: {path: numbers_.py}\n" }));
    const answer = await (await server.post("/numbers", {})).json();
    expect(answer).toEqual({
      float: 0.5,
      integer: 7,
      matrix: [
        [1, 2],
        [3, 4],
      ],
    });
  });
});
