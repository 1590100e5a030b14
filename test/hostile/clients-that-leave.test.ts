/** Clients that leave in the middle of a body are no faults of the server. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { RawRequests } from "../harness/raw-requests.ts";
import { TestServer } from "../harness/server.ts";

describe("a client that leaves in the middle of a submission", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: jobs.py}\n",
      "jobs.py":
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): pass\n",
    });
  }, 60_000);
  afterAll(() => server.stop());

  it("leaves no fault in the log", async () => {
    const raw = new RawRequests(server.baseUrl);
    for (let i = 0; i < 5; i++) {
      const headers = {
        "content-type": "application/json",
        "content-length": 100,
        expect: "100-continue",
      };
      const left = raw.send("POST /jobs", headers);
      // The controller wants the body, so it waits for it.
      expect(await left.firstStatus()).toBe("100");
      left.socket.write('{"work');
      left.socket.end();
      await left.lastStatus();
    }
    await server.stopProcesses();
    await eventually("the log has ended", () => server.parent!.exitCode !== null);
    expect(server.stderr).not.toMatch(/internal_error|server_unavailable/);
  });
});
