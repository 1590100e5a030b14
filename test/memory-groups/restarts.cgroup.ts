/** Restarts under a real systemd that holds the socket, with the units and the nginx of the guide (docs/guides/service.md). */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import {
  deployEcho,
  guideBlock,
  HOME,
  isServing,
  predict,
  property,
  START_MS,
  startService,
  stopService,
  systemctl,
} from "../harness/guide-service.ts";
import { Nginx } from "../harness/nginx.ts";
import { ECHO } from "../harness/projects.ts";
import { SteadyLoad } from "../harness/steady-load.ts";

const REQUESTS = 2_000;
const RESTARTS = 5;
const FRONT = "http://127.0.0.1:8080";
const nginx = new Nginx(join(HOME, "nginx"));

beforeAll(async () => {
  await startService();
  expect(deployEcho(ECHO)).toContain("echo is live");
  await nginx.start(
    guideBlock("nginx", "quern.conf").replace("listen 80;", "listen 127.0.0.1:8080;"),
    `${FRONT}/-/livez`,
  );
}, START_MS);
afterAll(async () => {
  await nginx.stop();
  stopService();
});

it("systemd knows when the service is ready, and that it stops", () => {
  expect(property("Type")).toBe("notify");
  expect([property("ActiveState"), property("SubState")]).toEqual(["active", "running"]);
});

it(
  "none of 2,000 requests through nginx fails over five restarts of the service",
  async () => {
    const load = new SteadyLoad(`${FRONT}/echo`, 4);
    const answered = (count: number) =>
      eventually(`${count} requests have responses`, () => load.answers.length >= count, START_MS);
    const main = new Set<string>();
    for (let restart = 1; restart <= RESTARTS; restart++) {
      await answered((REQUESTS * restart) / (RESTARTS + 1));
      main.add(property("MainPID"));
      systemctl("restart", "--no-block", "quern");
      await eventually(
        "another one runs",
        () => !main.has(property("MainPID")) && property("ActiveState") === "active",
        START_MS,
      );
    }
    await answered(REQUESTS);
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200).slice(0, 3)).toEqual([]);
    expect(property("NRestarts")).toBe("0");
  },
  START_MS,
);

it(
  "a server that no longer tells systemd that it lives is restarted, and a connection waits for that",
  async () => {
    mkdirSync("/run/systemd/system/quern.service.d", { recursive: true });
    writeFileSync(
      "/run/systemd/system/quern.service.d/watchdog.conf",
      "[Service]\nWatchdogSec=5\nTimeoutAbortSec=5\n",
    );
    systemctl("daemon-reload");
    systemctl("restart", "quern");
    const stalled = Number(property("MainPID"));
    process.kill(stalled, "SIGSTOP");
    await eventually("systemd has started it again", () => property("NRestarts") === "1", START_MS);
    expect((await predict(1)).status).toBe(200);
    expect(Number(property("MainPID"))).not.toBe(stalled);
  },
  START_MS,
);

it(
  "a stopped service starts with the next connection",
  async () => {
    systemctl("stop", "quern.service");
    expect([property("ActiveState"), property("Result")]).toEqual(["inactive", "success"]);
    await isServing();
    expect((await predict(1)).status).toBe(200);
  },
  START_MS,
);
