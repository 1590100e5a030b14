import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { KILL_POINTS } from "../../../src/base/kill-points.ts";
import { eventually } from "../../harness/eventually.ts";
import { readOutput } from "../../harness/outputs.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const BATCHES = 20_000;

describe("a controller killed at a step of the commit order", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it.each(KILL_POINTS.flatMap((point) => (point.startsWith("ack") ? [point, `${point}:3`] : [point])))(
    "%s: continues the job with exact counts",
    async (point) => {
      server = new TestServer();
      await server.start({ QUERN_TEST_KILL_AT: point });
      server.deploy(project(OBEDIENT), { wait: false });
      const first = server.child("controller");
      const log = join(server.dir, "log");
      writeFileSync(log, "");
      // The first batch of each worker fails, so that the first commit has a failure and its dead letter.
      const items = Array.from({ length: BATCHES }, (_, id) => (id < 2 ? { id, do: "raise" } : { id }));
      const path = server.writeInput("in.jsonl", items.map((item) => `${JSON.stringify(item)}\n`).join(""));
      const isSubmission = point.startsWith("submission");
      const job = {
        workers: 2,
        config: { log },
        queue_dead_letter_queue: { arn: "letters", max_receive_count: 1 },
        output: { store_path: `file://${join(server.inputs, "out")}` },
        // The server stores inline items.
        ...(isSubmission
          ? { item_list: { items, batch_size: 1 } }
          : { delimited_files: { store_paths: [path], batch_size: 1 } }),
      };
      const answer = await server.post("/jobs", job);
      if (!isSubmission) expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
      await eventually("the controller was killed and is back", () =>
        server.stderr.includes("the controller ended (SIGKILL)"),
      );
      await eventually(
        "another controller answers",
        async () => (await server.fetch("/jobs")).status === 200,
      );
      expect(server.child("controller")).not.toBe(first);
      const { jobs } = (await (await server.fetch("/jobs")).json()) as { jobs: { job_id: string }[] };
      if (isSubmission) {
        // No response named a job. Whether it exists depends on whether the commit came first; it is never partial.
        expect(answer.status).toBe(503);
        expect(jobs).toHaveLength(point === "submission-before-commit" ? 0 : 1);
      }
      const id = jobs[0]?.job_id ?? (await server.submit("jobs", job));
      const ended = await server.ended("jobs", id);
      expect(ended).toMatchObject({
        status: "status_completed_with_failures",
        total_batch_count: BATCHES,
        batches_in_queue: 0,
        batch_metrics: { succeeded: BATCHES - 2, failed: 2 },
      });
      const { out } = server.cli(["queue", "messages", "letters", "-o", "json"]);
      const { messages } = JSON.parse(out) as { messages: { body: string }[] };
      const letters = messages.map(({ body }) => (JSON.parse(body) as { id: number }[])[0]!.id);
      expect(letters.sort()).toEqual([0, 1]);
      const handled = readFileSync(log, "utf8").trim().split("\n");
      expect(new Set(handled).size).toBe(BATCHES);
      if (!point.startsWith("ack") && !point.startsWith("rows")) expect(handled).toHaveLength(BATCHES);
      const { manifest, rows } = readOutput(join(server.inputs, "out", id));
      expect(manifest.batches).toEqual({ total: BATCHES, succeeded: BATCHES - 2, failed: 2 });
      expect(rows.map(({ batch_index }) => batch_index)).toEqual(
        Array.from({ length: BATCHES - 2 }, (_, i) => i + 2),
      );
    },
  );
});
