/**
 * Random kills are `npm run chaos` (test/chaos/); this is its last step: nothing is left after all of the server was
 * killed at once.
 */
import { afterAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { killAll, processes } from "../../harness/processes.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
afterAll(() => server.stop());

it("no process is left 40 s after everything was killed", async () => {
  await server.start();
  server.deploy(project(OBEDIENT));
  const items = Array.from({ length: 500 }, () => ({ do: "sleep", seconds: 1 }));
  await server.submit("jobs", { workers: 2, item_list: { items, batch_size: 1 } });
  await eventually("three workers run", () => server.workers().length === 3);
  const pids = [server.parent!.pid!, server.child("gateway"), server.child("controller")];
  killAll(pids);
  await eventually("nothing is left", () => server.workers().length === 0, 40_000);
  expect(processes().filter(({ pid }) => pids.includes(pid))).toEqual([]);
});
