/** docs/contract/operations.md#health: what a probe sees while something needs a person, and once that is over. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { processes } from "../../harness/processes.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        if config.get("broken"): raise ValueError("no model here")
        while config.get("hangs"): time.sleep(0.1)
        self.dies = config.get("dies")
        if self.dies:
            import threading
            threading.Timer(0.3, lambda: os._exit(3)).start()
    def predict(self, payload):
        return 1
`;

const server = new TestServer();
beforeAll(() => server.start({}, ["--gateways", "2"]));
afterAll(() => server.stop());

const deploy = (config: string, more = "") =>
  server.deploy(
    { "quern.yaml": `- name: x\n  predictor: {path: p.py, config: {${config}}${more}}\n`, "p.py": PREDICTOR },
    { wait: false },
  );

interface Health {
  code?: string;
  message?: string;
  errors?: { pointer: string; detail: string }[];
  warnings?: string[];
}

async function health(): Promise<{ status: number; body: Health }> {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const response = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as Health };
}

async function becomesUnhealthy(pointer: string, reason: RegExp): Promise<void> {
  let last: unknown;
  await eventually(
    `${pointer} is unhealthy`,
    async () => {
      const { status, body } = await health();
      last = body;
      const detail = body.errors?.find((error) => error.pointer === pointer)?.detail ?? "";
      return status === 503 && body.code === "unhealthy" && reason.test(detail);
    },
    60_000,
    () => JSON.stringify(last),
  );
}

const becomesHealthy = () => eventually("it is healthy", async () => (await health()).status === 200);

it("an API that cannot start is told, and doctor says it, until it serves", async () => {
  await becomesHealthy();
  deploy("broken: true");
  await becomesUnhealthy("/apis/x", /x is in status "error": ValueError: no model here/);
  const { code, out } = server.cli(["doctor"]);
  expect(code).toBe(1);
  expect(out).toMatch(/needs a person/);
  expect(out).toMatch(/no model here/);
  deploy("");
  await becomesHealthy();
});

it("a failed update beside a version that serves is a warning", async () => {
  deploy("broken: true");
  await eventually("the warning", async () => {
    const { status, body } = await health();
    return status === 200 && (body.warnings ?? []).some((text) => /^x serves, .*no model here/.test(text));
  });
  deploy("");
  await becomesHealthy();
});

it("a start that hangs past its timeout is told", async () => {
  server.cli(["delete", "-y", "x"]);
  deploy("hangs: true", ", startup_timeout: 1s");
  await becomesUnhealthy("/apis/x", /was not ready after 1s and was killed/);
  deploy("");
  await becomesHealthy();
});

it("an API whose replicas keep dying is told, also in the moments in which one is ready", async () => {
  server.cli(["delete", "-y", "x"]);
  deploy("dies: true");
  await becomesUnhealthy("/apis/x", /its replicas keep dying soon after they became ready/);
  for (let check = 0; check < 20; check++) {
    expect((await health()).status).toBe(503);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  deploy("");
  await becomesHealthy();
});

it("a gateway that dies again and again is told", async () => {
  const survivor = server.child("gateway");
  let isOver = false;
  const killing = (async () => {
    while (!isOver) {
      for (const { pid, ppid, command } of processes())
        if (ppid === server.parent!.pid && command.includes("__gateway") && pid !== survivor)
          process.kill(pid, "SIGKILL");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  await becomesUnhealthy("/gateways", /^1 of 2 gateways are connected/);
  isOver = true;
  await killing;
  await becomesHealthy();
});
