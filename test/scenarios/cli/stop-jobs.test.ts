/** `quern job stop` for many jobs. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestServer } from "../../harness/server.ts";

const SLEEPS = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): time.sleep(0 if payload == [0] else 60)
`;

describe("quern job stop", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n  compute: {cpu: 100m}\n",
      "p.py": SLEEPS,
    });
  });
  afterAll(() => server.stop());

  const submit = (item: number) =>
    server.submit("jobs", { item_list: { items: [item], batch_size: 1 }, workers: 1 });
  const statuses = (ids: string[]) =>
    Promise.all(ids.map(async (id) => (await server.job("jobs", id)).status.replace("status_", "")));

  it("stops those that were submitted before a time, and then all, and leaves ended ones alone", async () => {
    const done = await submit(0);
    await server.ended("jobs", done);
    const old = [await submit(1), await submit(2)];
    const { created_time: time } = await server.job("jobs", old[1]!);
    const young = await submit(3);
    const cli = (...args: string[]) => server.cli(["job", "stop", "jobs", ...args]);
    expect(cli("--created-before", time)).toMatchObject({ code: 0, out: "1 of 1 jobs of jobs stopped\n" });
    expect((await statuses([...old, young]))[0]).toBe("stopped");
    const all = cli("--all", "-o", "json");
    expect([all.code, JSON.parse(all.out)]).toEqual([0, { stopped: 2, ended: 0 }]);
    expect(await statuses([done, ...old, young])).toEqual(["succeeded", "stopped", "stopped", "stopped"]);
    expect(cli("--status", "running")).toMatchObject({ code: 0, out: "0 of 0 jobs of jobs stopped\n" });
  });

  it.each([
    [[], "name one job, or give --all"],
    [["some-job", "--all"], "name one job, or give --all"],
    [["--status", "succeeded"], "other jobs have ended"],
    [["--created-before", "noon"], "must be a time such as"],
    [["--created-before", "5"], "must be a time such as"],
  ])("is refused with %j", (args, why) => {
    const { code, err } = server.cli(["job", "stop", "jobs", ...args]);
    expect([code, err]).toEqual([2, expect.stringContaining(why)]);
  });
});
