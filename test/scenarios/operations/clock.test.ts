/** A server whose wall clock is set while it runs: nothing happens too early, and records have the new time. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";

const HOUR_MS = 3_600_000;
const GATED = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.gate = config["gate"]
    def predict(self, payload):
        while not os.path.exists(self.gate): time.sleep(0.02)
`;

describe("a server whose wall clock is set", () => {
  const server = new TestServer();
  const clock = join(server.dir, "clock");
  const gate = join(server.dir, "gate");
  const env = {
    NODE_OPTIONS: `--import=${join(root, "test", "harness", "settable-clock.mjs")}`,
    FAKE_CLOCK: clock,
  };
  let stepMs = 0;
  const step = (ms: number) => {
    stepMs += ms;
    writeFileSync(clock, String(stepMs));
  };
  const submit = (timeout: number, at = gate) =>
    server.submit("jobs", {
      workers: 1,
      timeout,
      config: { gate: at },
      item_list: { items: [1, 2], batch_size: 1 },
    });
  const offBy = (time: string) => Math.abs(Date.parse(time) - (Date.now() + stepMs));

  beforeAll(async () => {
    step(0);
    await server.start(env);
    server.deploy(
      {
        "quern.yaml":
          "- {name: jobs, kind: BatchAPI, predictor: {path: predictor.py, config: {gate: /nowhere}}}\n",
        "predictor.py": GATED,
      },
      { wait: false },
    );
  });
  afterAll(() => server.stop());

  const created = async (id: string) => {
    const { job_status } = (await (await server.fetch(`/jobs/${id}`)).json()) as {
      job_status: { created_time: string };
    };
    return job_status.created_time;
  };

  it("gives jobs before and after the change their whole timeout, and records the new time", async () => {
    const before = await submit(600);
    await eventually(
      "a worker has it",
      async () => (await server.job("jobs", before)).start_time !== undefined,
    );
    step(3 * HOUR_MS);
    const after = await submit(600);
    expect(offBy(await created(after))).toBeLessThan(60_000);
    const short = await submit(1, join(server.dir, "never"));
    expect((await server.ended("jobs", short)).status).toBe("status_timed_out");
    for (const id of [before, after]) expect(await server.job("jobs", id)).not.toHaveProperty("end_time");
    step(-2 * HOUR_MS);
    expect(offBy(await created(await submit(600)))).toBeLessThan(60_000);
    writeFileSync(gate, "");
    for (const id of [before, after]) {
      const job = await server.ended("jobs", id);
      expect(job.status).toBe("status_succeeded");
      expect(offBy(job.end_time!)).toBeLessThan(60_000);
    }
  });

  it("counts a timeout by the wall clock while no controller runs", async () => {
    const never = join(server.dir, "never");
    const [missed, kept] = [await submit(1800, never), await submit(36_000, never)];
    // The running controller does not count the hour; the next one does.
    step(HOUR_MS);
    process.kill(server.child("controller"), "SIGKILL");
    expect((await server.ended("jobs", missed)).status).toBe("status_timed_out");
    expect(await server.job("jobs", kept)).not.toHaveProperty("end_time");
    writeFileSync(never, "");
    expect((await server.ended("jobs", kept)).status).toBe("status_succeeded");
  });
});
