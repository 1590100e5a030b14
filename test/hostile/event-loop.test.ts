/** No request delays another: the largest requests and responses, measured by the delay of the event loops. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

/**
 * The promise is 100 ms, which a quiet machine keeps. A loaded machine delays processes for longer. The requests of
 * this test once blocked for 3 to 50 seconds.
 */
const LATE_MS = 2_000;
const MIB = 1024 * 1024;

const RUDE = `
import json, os

class PythonPredictor:
    def __init__(self, config):
        pass

    def predict(self, payload):
        do = payload[0].get("do") if isinstance(payload[0], dict) else None
        if do == "print": os.write(1, b"\\n" * (4 * 1024 * 1024))
        if do == "raise": raise Refused("x" * 8000 + str(payload[0].get("id")))

class Refused(Exception):
    status_code = 400
    detail = {"reason": "y" * 60000}
`;

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy(project(RUDE), { wait: false });
});
afterAll(() => server.stop());

const admin = () => ({
  headers: { authorization: `Bearer ${readFileSync(join(server.dataDir, "admin-token"), "utf8").trim()}` },
});
const submit = (body: string, query = "") => server.fetch(`/jobs${query}`, { method: "POST", body });
/** JSON elements of so many bytes together. */
const many = (element: string, bytes: number) =>
  new Array<string>(Math.floor(bytes / (element.length + 1))).fill(element).join(",");
const numbered = (count: number, text: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => text(n));

/** Checks afterwards that both processes report short delays. */
async function expectOnTime(): Promise<void> {
  const response = await server.fetch("/-/healthz", admin());
  const { event_loops } = (await response.json()) as {
    event_loops: { process: string; p99_ms: number; max_ms: number; longest_ms: number }[];
  };
  expect(event_loops.map(({ process }) => process)).toEqual(["controller", "gateway"]);
  for (const loop of event_loops) expect(loop.longest_ms, JSON.stringify(loop)).toBeLessThan(LATE_MS);
}

describe("the event loop", () => {
  const files = (more: string) => `{"workers":1,"delimited_files":{"batch_size":1,${more}}}`;
  const inline = (items: string) => `{"workers":1,"item_list":{"batch_size":10000,"items":[${items}]}}`;

  it.each<[string, () => string, number]>([
    [
      "2 MB of includes",
      () => files(`"store_paths":["file:///x"],"includes":[${many('"*"', 2 * MIB)}]`),
      400,
    ],
    ["store_paths of nine megabytes", () => files(`"store_paths":[${many('"file:///x"', 9 * MIB)}]`), 400],
    [
      "store_paths that begin with one another",
      () =>
        files(
          `"store_paths":[${numbered(1400, (n) => `"file:///${"x/".repeat(700 - (n >> 1))}${"x".repeat(n % 2)}"`).join(",")}]`,
        ),
      400,
    ],
    // Each took 0.2 s of CPU, so that the check passed because no file was found in time.
    [
      "store_paths that are 2,000 directories deep",
      () =>
        files(
          `"store_paths":[${numbered(200, (n) => `"file://${server.inputs}/${"a/".repeat(1900)}${n}"`).join(",")}]`,
        ),
      400,
    ],
    ["paths of another type", () => files(`"store_paths":[${many("1", 3 * MIB)}]`), 400],
    ["700,000 unknown keys", () => `{"workers":1,${numbered(700_000, (n) => `"k${n}":1`).join(",")}}`, 400],
    ["a key of three megabytes", () => `{"workers":1,"${"k".repeat(3 * MIB)}":1}`, 400],
    ["keys of config", () => `{"config":{${numbered(200_000, (n) => `"key${n}":1`).join(",")}}}`, 400],
    ["ten megabytes of empty objects", () => inline(many("{}", 10 * MIB - 100)), 200],
    ["ten megabytes of invalid numbers", () => inline(`${many("1", 10 * MIB - 100)},-`), 400],
  ])("is not blocked by a submission of %s", async (_, body, status) => {
    const response = await submit(body(), "?dryRun=true");
    expect([response.status, (await response.text()).length < 20_000]).toEqual([status, true]);
    await expectOnTime();
  });

  it("is not blocked by patterns with very many possible matches on many long names", async () => {
    const directory = join(server.inputs, "names");
    mkdirSync(directory);
    for (let n = 0; n < 60; n++)
      writeFileSync(
        join(directory, `${n}${"ab".repeat(100).slice(0, 200 - (n % 7))}${n % 3 === 0 ? "" : "b"}`),
        "",
      );
    const tail = "[ab]".repeat(150);
    const includes = JSON.stringify([...numbered(30, (n) => `**a${tail}${n}`), "**"]);
    const response = await submit(
      files(`"store_paths":["file://${directory}/"],"includes":${includes}`),
      "?dryRun=true",
    );
    expect(((await response.json()) as { file_count: number }).file_count).toBe(60);
    await expectOnTime();
  });

  it.each([
    ["ten megabytes of comments", () => numbered(900_000, (n) => `# ${n}\n`).join(""), "at most 1048576"],
    ["many comments", () => numbered(100_000, (n) => `# ${n}\n`).join(""), "must be a list"],
    [
      "more APIs than a file may have",
      () => numbered(2_000, (n) => `- name: a${n}\n`).join(""),
      "at most 500",
    ],
    ["many unknown keys", () => `- name: a\n${numbered(20_000, (n) => `  k${n}: 1\n`).join("")}`, "k0"],
    [
      "an application with much YAML",
      () =>
        `- {kind: app, name: a}\n${numbered(3_000, (n) => `- {kind: raw_column, name: c${n}}\n`).join("")}`,
      "deploy failed",
    ],
  ])(
    "is not blocked by a deployment of %s",
    async (_, yaml, words) => {
      const files = { "quern.yaml": yaml(), "predictor.py": RUDE };
      await expect(server.deployBeside(files)).rejects.toThrow(words);
      await expectOnTime();
    },
    120_000,
  );

  it("is not blocked by pages of long errors, messages and log lines", async () => {
    const items = numbered(120, (id) =>
      JSON.stringify({ do: "raise", id: String.fromCodePoint(0x4e00 + id) }),
    );
    const payload = JSON.stringify({ do: "raise", text: "z".repeat(200_000) });
    const path = server.writeInput("large.jsonl", `${payload}\n`.repeat(60));
    const dead = { queue_dead_letter_queue: { arn: "dead", max_receive_count: 1 } };
    const raising = await server.submit("jobs", {
      workers: 2,
      item_list: { items: items.map((item) => JSON.parse(item) as unknown), batch_size: 1 },
    });
    const letters = await server.submit("jobs", {
      workers: 1,
      ...dead,
      delimited_files: { store_paths: [path], batch_size: 1 },
    });
    const printing = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [{ do: "print" }], batch_size: 1 },
    });
    for (const id of [raising, letters, printing]) await server.ended("jobs", id);
    const answers = await Promise.all(
      [
        `/jobs/${raising}/failures?limit=500`,
        `/jobs/${raising}/failures?group_by=error`,
        "/-/queues/dead/messages?limit=500",
        `/jobs/${printing}/logs`,
        ...["/-/queues", "/-/metrics", "/-/apis", "/jobs?limit=500"],
      ].map(async (address) => {
        const response = await server.fetch(address, admin());
        return [response.status, await response.text()] as const;
      }),
    );
    expect(answers.map(([status]) => status)).toEqual(answers.map(() => 200));
    const [failures, groups, messages, , , metrics] = answers.map(([, text]) => text);
    expect((JSON.parse(failures!) as { failures: unknown[] }).failures).toHaveLength(120);
    expect((JSON.parse(groups!) as { groups: unknown[] }).groups.length).toBeGreaterThan(0);
    expect((JSON.parse(messages!) as { messages: unknown[] }).messages).toHaveLength(60);
    expect(metrics).toMatch(/quern_event_loop_delay_seconds\{process="gateway",quantile="0.99"\} [0-9.]+/);
    await expectOnTime();
  }, 120_000);
});
