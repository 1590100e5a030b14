/** A job whose enqueuing kills the controller every time: it ends, and the jobs beside it go on. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENQUEUING_DEATHS_MAX } from "../../src/contracts/limits/jobs.ts";
import { serverOver } from "../harness/answering-stores.ts";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT } from "../harness/projects.ts";
import type { TestServer } from "../harness/server.ts";

describe("a job whose listing kills the controller", () => {
  const held = new Set<ServerResponse>();
  let kills = 0;
  /** Prefixes whose first listing was answered: that of the submission. */
  const submitted = new Set<string>();
  let isDeadly = false;
  let isRepaired = false;
  const answer = (response: ServerResponse) =>
    response
      .setHeader("content-type", "application/xml")
      .end(
        `<ListBucketResult><Contents><Key>${prefixOf(response)}</Key><Size>1</Size></Contents></ListBucketResult>`,
      );
  const prefixOf = ({ req }: ServerResponse) => new URL(req.url!, "http://store").searchParams.get("prefix");
  /** Listings after that of the submission: those of one prefix kill the controller, those of the other one wait. */
  const store = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = request.url!;
    if (!submitted.has(url) || isRepaired) answer(response);
    else if (isDeadly && url.includes("deadly")) killController();
    else held.add(response.on("close", () => held.delete(response)));
    submitted.add(url);
  });
  const killController = () => {
    kills++;
    process.kill(server.child("controller"), "SIGKILL");
  };
  let server: TestServer;
  beforeAll(async () => {
    server = await serverOver(store);
    await server.start();
    server.deploy(
      {
        "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n  compute: {cpu: 100m}\n",
        "p.py": OBEDIENT,
      },
      { wait: false },
    );
  });
  afterAll(async () => {
    await server.stop();
    store.close();
    store.closeAllConnections();
  });

  const submit = (prefix: string) =>
    server.submit("jobs", {
      workers: 1,
      file_path_lister: { store_paths: [`s3://bucket/${prefix}`], batch_size: 1 },
    });

  it("ends with the cure; a job beside it goes on, and a resumed one starts anew", async () => {
    const deadly = await submit("deadly");
    const slow = await submit("slow");
    await eventually("both list", () => held.size === 2);
    isDeadly = true;
    killController();
    const job = await server.ended("jobs", deadly, 120_000);
    expect(job).toMatchObject({
      status: "status_enqueue_failed",
      reason: { code: "controller_died", hint: expect.stringContaining("quern job resume") },
    });
    // The first death is not counted: no write is spent on a job that no controller had before.
    expect(kills).toBe(ENQUEUING_DEATHS_MAX + 1);

    await eventually("the other job lists", () => held.size > 0);
    expect((await server.job("jobs", slow)).status).toBe("status_enqueuing");
    isRepaired = true;
    for (const response of held) answer(response);
    expect((await server.ended("jobs", slow)).status).toBe("status_succeeded");
    expect((await server.fetch(`/jobs/${deadly}/resume`, { method: "POST" })).status).toBe(200);
    expect((await server.ended("jobs", deadly)).status).toBe("status_succeeded");
  }, 150_000);
});
