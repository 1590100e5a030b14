/** A server that may open few files: workers of jobs wait, and everything else goes on. */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const FILES = 128;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
const server = new TestServer();

beforeAll(async () => {
  await server.start();
  server.deploy(
    project(OBEDIENT, { batch: "- {name: others, kind: BatchAPI, predictor: {path: predictor.py}}\n" }),
  );
}, 60_000);
afterAll(() => server.stop());

/** The parent and its children from now on may open so many files. */
async function restartControllerWith(files: number): Promise<void> {
  execFileSync("prlimit", ["--pid", String(server.parent!.pid), `--nofile=${files}:${files}`]);
  const former = server.child("controller");
  process.kill(former, "SIGKILL");
  await eventually("another controller answers", async () => (await server.fetch("/jobs")).status === 200);
  expect(server.child("controller")).not.toBe(former);
}

it.runIf(hasPrlimit)(
  "workers wait for files that the server may not open, and requests and other jobs go on",
  async () => {
    await restartControllerWith(FILES);
    const path = join(server.dir, "go-on");
    const items = Array.from({ length: 60 }, (_, id) => ({ id, do: "await", path }));
    const many = await server.submit("jobs", { workers: 60, item_list: { items, batch_size: 1 } });
    await eventually(
      "its workers wait for files",
      async () =>
        (await server.job("jobs", many)).waiting?.includes(`open files: the server may open ${FILES}`) ===
        true,
    );
    await eventually(
      "others of them work",
      async () => ((await server.job("jobs", many)).worker_counts?.running ?? 0) > 3,
    );
    const asked = await Promise.all(Array.from({ length: 25 }, () => server.fetch("/jobs")));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
    const one = await server.submit("others", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    expect(await server.ended("others", one)).toMatchObject({ status: "status_succeeded" });
    expect(server.cli(["explain", "jobs", many]).out).toContain("LimitNOFILE");
    writeFileSync(path, "");
    expect(await server.ended("jobs", many)).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: 60, failed: 0 },
    });
  },
  120_000,
);
