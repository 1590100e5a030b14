/**
 * A table of troubles: what a probe of `/-/healthz` and a caller see meanwhile, what a person reads in the server's log,
 * and that it heals (docs/contract/operations.md#health).
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeDirectory } from "../../../src/settings/runtime-directory.ts";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";
import { mountSmallDisk, unmount } from "../../harness/small-disk.ts";

const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config):
        while config.get("hangs"): time.sleep(0.1)
    def predict(self, payload):
        if isinstance(payload, list): time.sleep(0.2)
        return payload
`;
const api = (name: string, more: string) => `- name: ${name}\n  predictor: {path: p.py${more}}\n`;
const APIS = `${api("x", "")}${api("jobs", "")}  kind: BatchAPI\n`;
const TWO_DAYS_MS = 2 * 24 * 3_600_000;
const HEALTH: Asked = { path: "/-/healthz", everyMs: 100, timeout: 2_000 };
/** More patient than a probe, and than a command of this test takes, which blocks this process. */
const CALL: Asked = { path: "/x", everyMs: 200, timeout: 30_000, body: "1" };

interface Trouble {
  what: string;
  /** Resolves once it has begun. */
  cause: () => Promise<void> | void;
  /** What a person must do, once a probe has seen it; nothing if it heals by itself. */
  cure?: () => void;
  probe?: RegExp;
  /** What `quern doctor` says meanwhile. */
  doctor?: RegExp;
  /** What the log says. */
  log?: RegExp;
  /** Some callers lose their connection. Otherwise they wait at most. */
  losesCalls?: true;
}

const server = new TestServer();
const clock = join(server.dir, "clock");
const project = (more = "") => ({ "quern.yaml": APIS + more, "p.py": PREDICTOR });
const submit = (items: number) =>
  server.submit("jobs", {
    workers: 1,
    timeout: 600,
    item_list: { items: Array(items).fill(1), batch_size: 1 },
  });
const deployBeside = (more: string) => void server.deploy(project(api("h", more)), { wait: false });
const stopAll = (pids: number[]) => {
  for (const pid of pids) process.kill(pid, "SIGSTOP");
};
let job = "";

const TROUBLES: Trouble[] = [
  {
    what: "a gateway is stopped",
    cause: () => void server.freeze("gateway"),
    probe: /^503 .*1 of 2 gateways are connected/,
    log: /the gateway 0 has not responded for 10 s; replacing it/,
    losesCalls: true,
  },
  {
    what: "the controller is stopped",
    cause: () => void server.freeze("controller"),
    probe: /^(silent|503 .*the controller is starting or stopping)/,
    log: /the controller has not responded for 10 s; replacing it/,
  },
  {
    what: "a replica is stopped",
    cause: () => stopAll(server.workers()),
    log: /"event":"worker_continued"/,
  },
  {
    what: "a worker of a job is stopped",
    cause: async () => {
      const replicas = new Set(server.workers());
      job = await submit(10);
      await eventually("its worker runs", () => server.workers().length > replicas.size);
      stopAll(server.workers().filter((pid) => !replicas.has(pid)));
    },
    log: /"event":"worker_continued"/,
  },
  {
    what: "the parent is stopped",
    cause: () => void server.parent!.kill("SIGSTOP"),
    cure: () => void server.parent!.kill("SIGCONT"),
    probe: /^silent/,
  },
  {
    what: "the runtime directory is removed",
    cause: () => rmSync(runtimeDirectory(server.dataDir), { recursive: true }),
    log: /"event":"runtime_directory_made_again"/,
  },
  {
    what: "an __init__ hangs",
    cause: () => deployBeside(", startup_timeout: 1s, config: {hangs: true}"),
    cure: () => deployBeside(""),
    probe: /^503 .*\/apis\/h.*h is in status .*was not ready after 1s and was killed/,
    doctor: /needs a person.*h is in status .*was not ready after 1s/s,
    log: /"event":"replica_not_set_up"/,
  },
  {
    what: "the clock is set two days forward",
    cause: async () => {
      job = await submit(10);
      writeFileSync(clock, String(TWO_DAYS_MS));
    },
  },
];

interface Asked {
  path: string;
  everyMs: number;
  timeout: number;
  body?: string;
}

/** Asks again and again, on a connection of its own each time, and keeps what it saw. */
class Probe {
  readonly seen: string[] = [];
  private isOver = false;
  private readonly asking: Promise<unknown>;

  constructor(asked: Asked) {
    this.asking = this.ask(asked);
  }

  async end(): Promise<string[]> {
    this.isOver = true;
    await this.asking;
    return this.seen;
  }

  get isWell(): boolean {
    return this.seen.length > 0 && this.seen.slice(-10).every((each) => each.startsWith("200 "));
  }

  private async ask(asked: Asked): Promise<void> {
    const all: Promise<void>[] = [];
    for (; !this.isOver; await pause(asked.everyMs))
      all.push(answerOf(asked).then((answer) => void this.seen.push(answer)));
    await Promise.all(all);
  }
}

/** "silent" if there is none in time, or none at all. */
function answerOf({ path, timeout, body }: Asked): Promise<string> {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const options = { method: body === undefined ? "GET" : "POST", agent: false, headers, timeout };
  return new Promise((resolve) => {
    const sent = request(server.baseUrl + path, options, (response) => {
      let text = "";
      response.on("data", (part) => (text += String(part)));
      response.on("end", () => resolve(`${response.statusCode} ${text}`));
    });
    sent.on("timeout", () => sent.destroy()).on("error", () => resolve("silent"));
    sent.end(body);
  });
}

describe("while", () => {
  beforeAll(async () => {
    writeFileSync(clock, "0");
    const settable = `--import=${join(root, "test", "harness", "settable-clock.mjs")}`;
    await server.start({ NODE_OPTIONS: settable, FAKE_CLOCK: clock }, ["--gateways", "2"]);
    server.deploy(project());
  });
  afterAll(() => server.stop());

  it.each(TROUBLES)(
    "$what",
    async ({ cause, cure, probe, doctor, log = /^/, losesCalls }) => {
      job = "";
      const logged = server.stderr.length;
      const [health, calls] = [new Probe(HEALTH), new Probe(CALL)];
      const told = () => `${server.stderr.slice(logged)}\n${[...new Set(health.seen)].join("\n")}`;
      await cause();
      if (probe !== undefined)
        await eventually("a probe sees it", () => health.seen.some((each) => probe.test(each)), 60_000, told);
      if (doctor !== undefined) expect(server.cli(["doctor"]).out).toMatch(doctor);
      cure?.();
      await eventually("it is in the log", () => log.test(server.stderr.slice(logged)), 60_000, told);
      await eventually("all is well", () => health.isWell && calls.isWell, 60_000, told);
      await health.end();
      const lost = (await calls.end()).filter((each) => !each.startsWith("200 "));
      expect(losesCalls ? lost.filter((each) => each !== "silent") : lost).toEqual([]);
      if (job !== "") expect((await server.ended("jobs", job)).status).toBe("status_succeeded");
    },
    180_000,
  );
});

describe.runIf(isOnSqlite)("at a start", () => {
  const late = new TestServer();
  const isMounted = isOnSqlite && mountSmallDisk(late.dataDir, 8);
  const filler = join(late.dataDir, "filler");
  afterAll(async () => {
    await late.stopProcesses();
    if (isMounted) unmount(late.dataDir);
    await late.stop();
  });

  it.runIf(isMounted)(
    "a full disk is told, and waited for",
    async () => {
      try {
        writeFileSync(filler, Buffer.alloc(9 * 1024 * 1024));
      } catch {
        // It is full.
      }
      const started = late.start();
      started.catch(() => {});
      await eventually(
        "it says why it waits",
        () => /the server's disk is full: waiting/.test(late.stderr),
        60_000,
      );
      rmSync(filler);
      await started;
      await eventually("it is ready", async () => (await late.fetch("/-/readyz")).status === 200);
    },
    120_000,
  );
});
