/** Guarantees of ARCHITECTURE.md that hold between two processes, each checked at the moment when it could break. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { processStartTime } from "../../../src/base/process-identity.ts";
import { runtimeDirectory } from "../../../src/settings/runtime-directory.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

/** Records which worker begins which batch; holds the interpreter while the file `hold` exists. */
const WATCHED = `
import ctypes, os
class PythonPredictor:
    def __init__(self, config):
        self.log, self.hold = config["log"], config["hold"]
    def predict(self, payload):
        item = payload[0] if isinstance(payload, list) else payload
        with open(self.log, "a") as log: log.write("%s %d\\n" % (item["id"], os.getpid()))
        while item.get("holds") and os.path.exists(self.hold): ctypes.PyDLL(None).usleep(ctypes.c_uint(10000))
        if item["id"] == "files": return [os.readlink("/proc/self/fd/%d" % number) for number in range(3)]
        return item["id"]
`;

const server = new TestServer();
const log = join(server.dir, "begun");
const hold = join(server.dir, "hold");
beforeAll(async () => {
  await server.start();
  const predictor = `{path: predictor.py, config: ${JSON.stringify({ log, hold })}}`;
  server.deploy({
    "quern.yaml": `- name: ask\n  predictor: ${predictor}\n- name: jobs\n  kind: BatchAPI\n  predictor: ${predictor}\n`,
    "predictor.py": WATCHED,
  });
});
afterAll(() => server.stop());
beforeEach(() => {
  writeFileSync(log, "");
  writeFileSync(hold, "");
});

// A worker that is held in predict() would not exit.
afterEach(() => rmSync(hold, { force: true }));

const begun = () => {
  const lines = readFileSync(log, "utf8").trim().split("\n").filter(Boolean);
  return lines.map((line) => ({ id: line.split(" ")[0]!, pid: Number(line.split(" ")[1]) }));
};
const begunWith = (id: string) => begun().filter((one) => one.id === id);
const killController = () => process.kill(server.child("controller"), "SIGKILL");

describe("a controller that starts after a crash", () => {
  it("ends the workers of the previous one before it leases their batches again", async () => {
    const items = [{ id: "held", holds: true }];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    await eventually("the batch is in hand", () => begun().length === 1);
    killController();
    await eventually("it is in other hands", () => begun().length === 2);
    // The first is held inside predict(), so it would not have exited by itself.
    expect(processStartTime(begun()[0]!.pid)).toBeUndefined();
    rmSync(hold);
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 1, failed: 0 } });
  });

  it("charges a batch that has lost its worker four times, and no other batch", async () => {
    const items = [...Array.from({ length: 30 }, (_, n) => ({ id: `n${n}` })), { id: "held", holds: true }];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    for (let times = 1; times <= 4; times++) {
      await eventually(`the batch is in hand (${times})`, () => begunWith("held").length === times);
      killController();
    }
    await eventually("the job has ended, or the batch is out again", async () => {
      const job = await server.job("jobs", id).catch(() => undefined);
      return job?.end_time !== undefined || begunWith("held").length > 4;
    });
    expect(begunWith("held")).toHaveLength(4);
    const job = await server.job("jobs", id);
    expect(job).toMatchObject({ status: "status_worker_error", batch_metrics: { succeeded: 30, failed: 1 } });
  });
});

describe("a replica that dies", () => {
  it("costs a started request a 502 without a second run, and queued requests are answered", async () => {
    const first = server.post("/ask", { id: "first", holds: true });
    await eventually("the first has begun", () => begun().length === 1);
    const behind = Array.from({ length: 3 }, (_, n) => server.post("/ask", { id: `behind${n}` }));
    process.kill(begun()[0]!.pid, "SIGKILL");
    rmSync(hold);
    expect((await first).status).toBe(502);
    const later = await Promise.all(behind.map(async (one) => (await one).json()));
    expect(later).toEqual(["behind0", "behind1", "behind2"]);
    expect(begunWith("first")).toHaveLength(1);
  });
});

describe("user code", () => {
  it("has an empty standard input, and writes to a log file without a pipe", async () => {
    const [input, output, errors] = (await (await server.post("/ask", { id: "files" })).json()) as string[];
    expect(input).toBe("/dev/null");
    for (const file of [output, errors]) expect(file).toContain(join(server.dataDir, "logs"));
  });
});

describe("the response to a revocation", () => {
  /** Directly to the controller, because the gateway is suspended. */
  const controller = (method: string, path: string): Promise<number> => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const socketPath = join(runtimeDirectory(server.dataDir), "controller.sock");
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, host: new URL(server.baseUrl).host };
      const sent = request({ socketPath, method, path, headers }, (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode!));
      });
      sent.on("error", reject).end();
    });
  };

  it("waits until every gateway applies it", async () => {
    rmSync(hold);
    const create = () =>
      JSON.parse(server.cli(["keys", "create", "--scope", "predict", "-o", "json"]).out) as {
        id: string;
        key: string;
      };
    const { id, key } = create();
    const ask = async () => (await server.post("/ask", { id: "x" }, { "x-api-key": key })).status;
    expect(await ask()).toBe(200);
    const gateway = server.child("gateway");
    process.kill(gateway, "SIGSTOP");
    try {
      let answered: number | undefined;
      const revocation = controller("DELETE", `/-/keys/${id}`).then((status) => (answered = status));
      const routes = () => readFileSync(join(server.dataDir, "routes.json"), "utf8");
      await eventually("it is published", () => !routes().includes(id));
      // An answer that did not wait would have arrived by now, because this later request is answered.
      expect(await controller("GET", "/-/keys")).toBe(200);
      expect(answered).toBeUndefined();
      process.kill(gateway, "SIGCONT");
      expect(await revocation).toBe(200);
      expect(await ask()).toBe(401);
    } finally {
      process.kill(gateway, "SIGCONT");
    }
  });
});
