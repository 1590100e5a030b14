/**
 * An error in one job, API or request ends only that one. Each unit of work throws an unexpected error while others
 * run. No process ends, and no error reaches the last handler.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT } from "../harness/projects.ts";
import { root, TestServer } from "../harness/server.ts";

const server = new TestServer();
const file = join(server.dir, "throw-at");
const throwAt = (point: string) => writeFileSync(file, point);
const yaml = ["victim", "bystander"]
  .map(
    (name) =>
      `- {name: ${name}, predictor: {path: p.py}}\n- {name: ${name}-jobs, kind: BatchAPI, predictor: {path: p.py}}\n`,
  )
  .join("");
const items = (...all: unknown[]) => ({ workers: 2, item_list: { items: all, batch_size: 1 } });
let children: number[];
/** These methods do not show the owner of the unit: they throw for each job that runs meanwhile. */
const isShared = (point: string) => /^(BatchWorker|Dispatcher|LeaseCursor|Settlements)/.test(point);

beforeAll(async () => {
  throwAt("");
  server.program = join(root, "dist", "bin.js");
  await server.start({
    NODE_OPTIONS: `--import=${join(root, "test", "harness", "throwing.mjs")}`,
    THROW_AT: file,
    THROW_DIST: join(root, "dist"),
  });
  server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT });
  children = [server.child("gateway"), server.child("controller")];
});
beforeEach(() => {
  server.stderr = "";
});
afterAll(() => server.stop());

/** The others continue in the same processes. */
async function othersGoOn(): Promise<void> {
  const answer = await server.post("/bystander", { id: 7 });
  expect([answer.status, await answer.json()]).toEqual([200, 7]);
  expect([server.child("gateway"), server.child("controller")]).toEqual(children);
  expect(server.stderr).not.toContain("unhandled error");
}

/** ... and the victim recovers once nothing throws. */
async function victimRecovers(): Promise<void> {
  throwAt("");
  const isWell = async () => (await server.post("/victim", { id: 1 })).status === 200;
  await eventually("the victim answers", isWell);
}

const hasLogged = (point: string) =>
  eventually(`${point} was thrown`, () => server.stderr.includes(`thrown in ${point}`));

describe("a job that throws", () => {
  afterEach(() => throwAt(""));
  const unexpected = "status_unexpected_error";

  it.each([
    ["JobRun.start", items(1), unexpected],
    ["JobRun.run", items(1), unexpected],
    ["JobRun.tick", items({ do: "sleep", seconds: 5 }), unexpected],
    ["Enqueuing.enqueue", items(1), unexpected],
    ["JobRun.dispatch", items(1), unexpected],
    ["JobWorkers.startMissing", items(1), unexpected],
    ["Dispatching.start", items(1), unexpected],
    ["Completion.complete", items(1), unexpected],
    ["JobRun.end", items(1), unexpected],
    ["JobWorkers.keepAt", items(1), unexpected],
    ["JobWorkers.startOne", items(1), unexpected],
    ["BatchWorker.setUp", items(1), unexpected],
    ["BatchWorker.lease", items(1), unexpected],
    ["BatchWorker.onGone", items({ do: "exit" }), unexpected],
    ["Dispatcher.addWorker", items(1), unexpected],
    ["Dispatcher.acked", items(1), unexpected],
    ["Dispatcher.died", items({ do: "exit" }), unexpected],
    ["Dispatcher.committed", items(1), unexpected],
    ["Dispatcher.fill", items(1), unexpected],
    ["Settlements.write", items(1), unexpected],
    ["Settlements.drain", items(1), unexpected],
    ["LeaseCursor.load", items(1), "status_enqueue_failed"],
  ])("in %s ends without affecting others", async (point, submission, status) => {
    throwAt(point);
    const [id, other] = [
      await server.submit("victim-jobs", submission),
      await server.submit("bystander-jobs", items(2)),
    ];
    const job = await server.ended("victim-jobs", id);
    expect(job).toMatchObject({ status, reason: { message: expect.stringContaining(`thrown in ${point}`) } });
    const log = await (await server.fetch(`/victim-jobs/${id}/logs`)).text();
    expect(log).toContain(`the job ended: ${status}`);
    throwAt("");
    if (!isShared(point))
      expect((await server.ended("bystander-jobs", other)).status).toBe("status_succeeded");
    await othersGoOn();
  });

  it("ends normally if stopping a worker throws", async () => {
    throwAt("JobWorkers.drop");
    const job = await server.ended("victim-jobs", await server.submit("victim-jobs", items(1)));
    expect(job.status).toBe("status_succeeded");
    await hasLogged("JobWorkers.drop");
    throwAt("");
    await othersGoOn();
  });

  it("ends at the next start if its row cannot be read, and the others continue", async () => {
    const gate = join(server.dir, "gate");
    const waiting = { do: "await", path: gate };
    const [broken, whole] = [
      await server.submit("victim-jobs", items(waiting)),
      await server.submit("bystander-jobs", items(waiting)),
    ];
    await eventually("both run", async () =>
      (await Promise.all([server.job("victim-jobs", broken), server.job("bystander-jobs", whole)])).every(
        ({ status }) => status === "status_running",
      ),
    );
    const db = server.openDatabase();
    await db.run("UPDATE job_submissions SET submission_json = '{' WHERE job_id = ?", [broken]);
    await db.close();
    process.kill(children[1]!, "SIGKILL");
    await eventually("another controller is there", () => {
      try {
        return server.child("controller") !== children[1];
      } catch {
        return false;
      }
    });
    writeFileSync(gate, "");
    expect((await server.ended("victim-jobs", broken)).status).toBe(unexpected);
    expect((await server.ended("bystander-jobs", whole)).status).toBe("status_succeeded");
    children = [children[0]!, server.child("controller")];
    await othersGoOn();
  }, 120_000);
});

describe("a request that throws", () => {
  afterEach(victimRecovers);
  const predict = () =>
    server
      .post("/victim", { id: 1 }, { "x-request-id": "victim" })
      .then((answer) => answer.status)
      .catch(() => "cut off");

  it.each([
    ["Router.route", 500],
    ["Arrival.begin", 500],
    ["Arrival.submit", 500],
    ["ApiPool.dispatch", 500],
  ])("in %s gets 500", async (point, status) => {
    throwAt(point);
    expect(await predict()).toBe(status);
    await hasLogged(point);
    await othersGoOn();
  });

  it("at its end or at its answer affects no other request", async () => {
    throwAt("Arrival.status");
    expect(await predict()).toBe(200);
    await hasLogged("Arrival.status");
    await othersGoOn();
    throwAt("PredictionRequest.answer");
    expect([500, 502, "cut off"]).toContain(await predict());
    await othersGoOn();
  });

  it("on its way to the controller gets 500", async () => {
    throwAt("Router.forward");
    expect((await server.fetch("/victim-jobs")).status).toBe(500);
    await othersGoOn();
  });
});

describe("an API that throws", () => {
  afterEach(victimRecovers);
  interface View {
    status: string;
    replicas: { pid: number; state: string }[];
  }
  const control = (path: string, method = "GET") => {
    const key = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    return server.fetch(path, { method, headers: { authorization: `Bearer ${key}` } });
  };
  const victim = async () => {
    const answer = await control("/-/apis");
    if (!answer.ok) return undefined;
    const { apis } = (await answer.json()) as { apis: (View & { name: string })[] };
    return apis.find(({ name }) => name === "victim");
  };
  const serving = async () => (await victim())?.replicas.find(({ state }) => state === "ready")?.pid;

  it.each(["Autoscaling.look", "ApiPool.expire", "RouteTable.report"])("in %s, in a timer", async (point) => {
    throwAt(point);
    const slow = server.post("/victim", { do: "sleep", seconds: 1 }).catch(() => undefined);
    await hasLogged(point);
    await slow;
    await othersGoOn();
  });

  it.each([
    "Rollouts.reconcile",
    "ReplicaOutcomes.gone",
    "Replica.connect",
    "Replica.gone",
    "ReplicaClient.connect",
    "ReplicaClient.onClose",
    "ApiPool.update",
    "ApiReader.readableState",
  ])("in %s, when its replica dies", async (point) => {
    await eventually("there is a replica", async () => (await serving()) !== undefined);
    const pid = await serving();
    throwAt(point);
    process.kill(pid!, "SIGKILL");
    await hasLogged(point);
    await othersGoOn();
  });

  it("keeps serving if its row cannot be read, and the server starts", async () => {
    throwAt("");
    await eventually("it serves", async () => (await server.post("/victim", { id: 1 })).status === 200);
    const db = server.openDatabase();
    await db.run("UPDATE api_versions SET spec_json = '{' WHERE name = 'victim'");
    await db.close();
    process.kill(children[1]!, "SIGKILL");
    await eventually("another controller tells of it", async () => (await victim())?.status === "error");
    children = [children[0]!, server.child("controller")];
    const alone = await control("/-/apis/victim");
    // Gateways report between the two requests.
    const { metrics: _, ...listed } = (await victim()) as object & { metrics?: unknown };
    expect([alone.status, await alone.json()]).toMatchObject([200, { ...listed, status: "error" }]);
    expect((await control("/-/apis/victim/refresh", "POST")).status).toBe(409);
    expect((await server.post("/victim", { id: 1 })).status).toBe(200);
    await othersGoOn();
    // The cure.
    const pid = server.workers();
    server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT });
    expect((await victim())?.status).toBe("live");
    // Its replica is adopted: no other is started.
    expect(pid).toContain(await serving());
  }, 120_000);
});
