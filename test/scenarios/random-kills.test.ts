import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { CREDIT_BATCHES_MAX } from "../../src/contracts/limits.ts";
import { eventually } from "../harness/eventually.ts";
import { project } from "../harness/projects.ts";
import { seeded } from "../harness/random.ts";
import { processes, TestServer } from "../harness/server.ts";

const BATCHES = 200_000;
const WORKERS = 2;
const KILLS = 10;

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT) if "log" in config else None
    def predict(self, payload):
        if self.log is None: return payload
        until = time.perf_counter() + 80e-6
        while time.perf_counter() < until: pass
        os.write(self.log, b"%d\\n" % payload[0]["id"])
`;

type Target = "controller" | "gateway" | "parent" | "batch worker" | "replica";
const TARGETS: Target[] = ["controller", "gateway", "parent", "batch worker", "replica"];

/** Calls the real-time API all the time; tells which calls failed, and when. */
class Caller {
  readonly failures: { atMs: number; what: string }[] = [];
  calls = 0;
  lastGoodMs = 0;
  private isOver = false;
  private loop: Promise<void> | undefined;
  private readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  start(): void {
    this.loop = this.run();
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.loop;
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      const number = this.calls++;
      try {
        const response = await this.server.post("/echo", [number], { connection: "close" });
        const text = await response.text();
        if (response.status === 200 && text === `[${number}]`) this.lastGoodMs = performance.now();
        else this.failures.push({ atMs: performance.now(), what: `${response.status} ${text}` });
      } catch (error) {
        this.failures.push({ atMs: performance.now(), what: String((error as Error).cause ?? error) });
      }
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
  }
}

describe("kill -9 at random moments", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it.each([1, 2, 3])(
    "loses nothing, seed %i",
    async (seed) => {
      const random = seeded(seed);
      server = new TestServer();
      await server.start();
      server.deploy(project(PREDICTOR));
      const log = join(server.dir, "log");
      writeFileSync(log, "");
      const path = server.writeInput(
        "in.jsonl",
        Array.from({ length: BATCHES }, (_, id) => `{"id":${id}}\n`).join(""),
      );
      const caller = new Caller(server);
      caller.start();
      const id = await server.submit("jobs", {
        workers: WORKERS,
        config: { log },
        delimited_files: { store_paths: [path], batch_size: 1 },
      });
      let workerKills = 0;
      const recovered: string[] = [];
      for (let kill = 0; kill < KILLS; kill++) {
        await new Promise((resolve) => setTimeout(resolve, 200 + random() * 500));
        const target = TARGETS[Math.floor(random() * TARGETS.length)]!;
        if ((await server.job("jobs", id).catch(() => undefined))?.end_time !== undefined) break;
        const failedBefore = caller.failures.length;
        if (target === "batch worker") workerKills++;
        await killOne(server, target, random);
        const killedMs = performance.now();
        await eventually(
          `predictions are answered again after the death of the ${target}`,
          () => caller.lastGoodMs > killedMs,
          5_000,
          () => server.stderr,
        );
        recovered.push(`${target} ${Math.round(caller.lastGoodMs - killedMs)} ms`);
        if (target === "controller" || target === "batch worker")
          expect(caller.failures.slice(failedBefore), target).toEqual([]);
      }
      const job = await server.ended("jobs", id, 120_000);
      await caller.stop();
      const { succeeded, failed } = job.batch_metrics;
      expect(succeeded + failed).toBe(BATCHES);
      expect(failed).toBeLessThanOrEqual(workerKills);
      expect(job.status).toBe(failed === 0 ? "status_succeeded" : "status_worker_error");
      const handled = readFileSync(log, "utf8").trim().split("\n");
      expect(new Set(handled).size).toBeGreaterThanOrEqual(BATCHES - failed);
      const reruns = handled.length - new Set(handled).size;
      console.log(
        `predictions again after: ${recovered.join(", ")}; ${failed} batches charged, ${reruns} run twice`,
      );
      const lost =
        workerKills + WORKERS * recovered.filter((what) => /^(controller|parent)/.test(what)).length;
      expect(reruns).toBeLessThanOrEqual(lost * CREDIT_BATCHES_MAX);
    },
    240_000,
  );

  it("leaves no process 40 s after everything was killed", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(PREDICTOR));
    const path = server.writeInput(
      "in.jsonl",
      Array.from({ length: 50_000 }, (_, id) => `{"id":${id}}\n`).join(""),
    );
    await server.submit("jobs", {
      workers: 2,
      config: { log: join(server.dir, "log") },
      delimited_files: { store_paths: [path], batch_size: 1 },
    });
    await eventually("three workers run", () => server.workers().length === 3);
    const pids = [server.parent!.pid!, server.child("gateway"), server.child("controller")];
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await eventually(
      "nothing is left",
      () => server.workers().length === 0 && !processes().some(({ pid }) => pids.includes(pid)),
      40_000,
    );
  });
});

async function killOne(server: TestServer, target: Target, random: () => number): Promise<void> {
  if (target === "controller" || target === "gateway") {
    process.kill(server.child(target), "SIGKILL");
    return;
  }
  if (target === "parent") {
    const { parent } = server;
    const exited = new Promise((resolve) => parent!.once("exit", resolve));
    parent!.kill("SIGKILL");
    await exited;
    await server.start();
    return;
  }
  const prefix = target === "replica" ? "/r-" : "/b-";
  const found = () =>
    processes().filter(({ pid, command }) => server.workers().includes(pid) && command.includes(`${prefix}`));
  await eventually(`there is a ${target}`, () => found().length > 0);
  const candidates = found();
  process.kill(candidates[Math.floor(random() * candidates.length)]!.pid, "SIGKILL");
}
