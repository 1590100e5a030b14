/** Jobs whose input unpacks to far more than its size, or needs more memory than any machine has. */
import { readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { ECHO, project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
/** 128 KiB of spaces in four bytes. */
const RUN = Buffer.from([0x02, 0x00, 0x10, 0x20]);
const runs = (count: number) => Buffer.concat(Array<Buffer>(count).fill(RUN));
const LAST = Buffer.from([0x01, 0x00, 0x00]);
const head = (window: number) => Buffer.from([...MAGIC, 0x00, window]);

describe("hostile compressed files", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO));
  });
  afterAll(() => server.stop());

  const submit = (name: string, bytes: Buffer) => {
    writeFileSync(join(server.inputs, name), bytes);
    const store_paths = [`file://${join(server.inputs, name)}`];
    return server.submit("jobs", { workers: 1, delimited_files: { store_paths, batch_size: 1 } });
  };

  it("end only their own jobs, while the controller stays small and serves others", async () => {
    const controller = server.child("controller");
    resetPeak(controller);
    const before = peakMiB(controller);
    const gigabyte = Buffer.concat([head(0xa0), LAST]);
    const ids = [
      ...(await Promise.all(Array.from({ length: 10 }, (_, i) => submit(`window-${i}.zst`, gigabyte)))),
      // 2 GiB in 64 KB, in the largest window that is allowed, several at once.
      ...(await Promise.all(
        Array.from({ length: 5 }, (_, i) =>
          submit(`runs-${i}.zst`, Buffer.concat([head(0x88), runs(16_000), LAST])),
        ),
      )),
      await submit("runs-small-window.zst", Buffer.concat([head(0x38), runs(16_000), LAST])),
      await submit("two-frames.zst", Buffer.concat([head(0x38), LAST, head(0xa0), LAST])),
    ];
    let isOver = false as boolean;
    const jobs = Promise.all(ids.map((id) => server.ended("jobs", id, 90_000)));
    const over = () => {
      isOver = true;
    };
    jobs.then(over, over);
    const delays: number[] = [];
    while (!isOver) {
      const started = performance.now();
      expect((await server.fetch("/jobs?limit=1")).status).toBe(200);
      delays.push(performance.now() - started);
    }
    const ended = await jobs;
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["status_enqueue_failed"]));
    const messages = ended.map(({ reason }) => reason!.message);
    for (const message of messages.slice(0, 10))
      expect(message).toMatch(/window of 1024 MiB|too much memory/);
    for (const message of messages.slice(10, 16)) expect(message).toMatch(/is longer than 8388608 bytes/);
    expect(peakMiB(controller) - before).toBeLessThan(450);
    expect(peakMiB(controller)).toBeLessThan(700);
    // Most requests must be fast, not all: the machine has other work.
    delays.sort((a, b) => a - b);
    expect(delays[Math.floor(delays.length * 0.9)]).toBeLessThan(1_000);
  }, 120_000);

  it("that unpack to nothing end their job, which then keeps nobody else from its place", async () => {
    // Blocks of three bytes, all of them empty.
    const nothing = await submit("nothing.zst", Buffer.concat([head(0x88), Buffer.alloc(40 << 20), LAST]));
    expect(await server.ended("jobs", nothing)).toMatchObject({
      ...{ status: "status_enqueue_failed", reason: { code: "input_unreadable" } },
    });
    const stopped = await submit("again.zst", Buffer.concat([head(0x88), Buffer.alloc(40 << 20), LAST]));
    await server.fetch(`/jobs/${stopped}`, { method: "DELETE" });
    expect((await server.ended("jobs", stopped)).status).toBe("status_stopped");
    const controller = server.child("controller");
    const open = () => readdirSync(`/proc/${controller}/fd`).filter((fd) => isAgain(controller, fd));
    await eventually("its file is closed", () => open().length === 0);
  });
});

function isAgain(pid: number, fd: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith("again.zst");
  } catch {
    return false;
  }
}
