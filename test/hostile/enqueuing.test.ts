/** Jobs that list for a long time, or have selections of megabytes: few enqueue at once, and the others say that they wait. */
import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENQUEUING_OF_AN_API_MAX } from "../../src/contracts/limits/jobs.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { selectFiles } from "../../src/object-store/select/select-files.ts";
import { serverOver } from "../harness/answering-stores.ts";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT } from "../harness/projects.ts";
import type { TestServer } from "../harness/server.ts";
import { UNWRITTEN } from "../harness/unwritten-store.ts";

const WAITS = /^the job waits until it may be enqueued: 4 jobs of jobs are being enqueued/;

describe("jobs whose store does not answer", () => {
  const held = new Set<ServerResponse>();
  /** Prefixes whose first listing was answered: that of the submission. */
  const known = new Set<string>();
  let isHeld = true;
  const answer = (response: ServerResponse) =>
    response
      .setHeader("content-type", "application/xml")
      .end(
        `<ListBucketResult><Contents><Key>${prefixOf(response)}</Key><Size>1</Size></Contents></ListBucketResult>`,
      );
  const prefixOf = ({ req }: ServerResponse) => new URL(req.url!, "http://store").searchParams.get("prefix");
  const store = createServer((request, response) => {
    const url = request.url!;
    if (!isHeld || !known.has(url)) answer(response);
    else held.add(response.on("close", () => held.delete(response)));
    known.add(url);
  });
  let server: TestServer;
  beforeAll(async () => {
    server = await serverOver(store);
    await server.start();
    const api = (name: string) => `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py}\n`;
    server.deploy({ "quern.yaml": api("jobs") + api("others"), "p.py": OBEDIENT }, { wait: false });
  });
  afterAll(async () => {
    await server.stop();
    store.close();
    store.closeAllConnections();
  });

  let jobs = 0;
  const submit = (api: string) =>
    server.submit(api, {
      workers: 1,
      file_path_lister: { store_paths: [`s3://bucket/${jobs++}`], batch_size: 1 },
    });

  it("occupy only the few slots of their API; the rest wait and say so", async () => {
    const ids: string[] = [];
    for (let i = 0; i < ENQUEUING_OF_AN_API_MAX + 3; i++) ids.push(await submit("jobs"));
    const other = await submit("others");
    const waiting = async () => {
      const all = await Promise.all(ids.map((id) => server.job("jobs", id)));
      return all.filter((job) => WAITS.test((job as { waiting?: string }).waiting ?? "")).length;
    };
    const areFew = async (waitingJobs: number) => {
      await eventually("a few list", () => held.size === ENQUEUING_OF_AN_API_MAX + 1);
      await eventually("the others wait", async () => (await waiting()) === waitingJobs);
      expect(held.size).toBe(ENQUEUING_OF_AN_API_MAX + 1);
    };
    await areFew(3);
    const items = { workers: 1, item_list: { items: [{}], batch_size: 1 } };
    const inline = await server.submit("jobs", items);
    expect((await server.ended("jobs", inline)).status).toBe("status_succeeded");

    const stopped = ids.pop()!;
    expect((await server.fetch(`/jobs/${stopped}`, { method: "DELETE" })).status).toBe(200);
    expect((await server.ended("jobs", stopped)).status).toBe("status_stopped");
    await server.stopProcesses();
    await server.start();
    await areFew(2);

    isHeld = false;
    for (const response of held) answer(response);
    for (const id of ids) expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
    expect((await server.ended("others", other)).status).toBe("status_succeeded");
  });
});

describe("the prefixes of a selection", () => {
  it("are sorted in slices, so that other work runs before the first is listed", async () => {
    let turns = 0;
    let turnsBefore = -1;
    const count = () => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const store: ObjectStore = {
      ...UNWRITTEN,
      parallelListings: () => 1,
      open: () => Promise.reject(new Error("is not opened")),
      async *list() {
        if (turnsBefore < 0) turnsBefore = turns;
        yield* [];
      },
    };
    const store_paths = Array.from({ length: 100_000 }, (_, i) => `file:///in/${(i * 7919) % 100_003}`);
    const files = selectFiles(store, { store_paths }, { sizes: false });
    expect((await files.next()).done).toBe(true);
    clearImmediate(counting);
    expect(turnsBefore).toBeGreaterThan(0);
  });
});
