/** Limits of requests: beyond them the response is a short error with a cure, while others are served. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX } from "../../src/contracts/limits/configuration.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { isOnSqlite } from "../harness/databases.ts";
import { peakMiB } from "../harness/peak-memory.ts";
import { ECHO, project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy(project(ECHO), { wait: false });
});
afterAll(() => server.stop());

const ITEM = `"item_list":{"items":[1],"batch_size":1}`;
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
interface Answer {
  status: number;
  text: string;
  code: string;
  message: string;
  errors: { pointer: string; detail: string }[];
}
const submit = async (body: string): Promise<Answer> => {
  const response = await server.post("/jobs", body);
  const text = await response.text();
  return { status: response.status, text, ...(JSON.parse(text) as Omit<Answer, "status" | "text">) };
};

describe("a submission beyond a limit", () => {
  const config = (value: string) => `{"workers":1,${ITEM},"config":{"a":${value}}}`;
  const dlq = (arn: string) => `{"arn":"${arn}","max_receive_count":1}`;
  const file = (path: string, more = "") =>
    `{"workers":1,"delimited_files":{"store_paths":["${path}"],"batch_size":1${more}}}`;

  it.each([
    ["deeply nested config", config(nested(5_000)), "/config", "deeper than 100"],
    ["config that is too large", config(`"${"x".repeat(9_000_000)}"`), "/config", "9000008 bytes"],
    ["workers that are an array", `{"workers":${nested(5_000)},${ITEM}}`, "/workers", "(got [[[[[..."],
    ["workers without an end", `{"workers":1e999,${ITEM}}`, "/workers", "(got Infinity)"],
    ["workers of 1e308", `{"workers":1e308,${ITEM}}`, "/workers", "must be an integer"],
    ["a timeout of 2^53", `{"workers":1,"timeout":9007199254740992,${ITEM}}`, "/timeout", "(got 9007"],
    [
      "a long name of a queue",
      `{"workers":1,"queue_dead_letter_queue":${dlq("q".repeat(1e6))},${ITEM}}`,
      "/queue_dead_letter_queue/arn",
      "at most 80",
    ],
    [
      "a long path",
      file(`file:///${"x".repeat(1e6)}`),
      "/delimited_files/store_paths/0",
      "1000008 bytes; a path has at most",
    ],
    ["a path without a scheme", file("x".repeat(4_000)), "/delimited_files/store_paths/0", "is not a path"],
    [
      "a long pattern",
      file("file:///a", `,"includes":["${"*".repeat(1e6)}"]`),
      "/delimited_files/includes/0",
      "at most 1024",
    ],
  ])("gets a short 400 that names the field: %s", async (_, body, pointer, words) => {
    const { status, code, errors, text } = await submit(body);
    expect([status, code]).toEqual([400, "invalid_request"]);
    expect(errors).toEqual([{ pointer, detail: expect.stringContaining(words) }]);
    expect(text.length).toBeLessThan(2_000);
  });

  it.each([
    ["an array of arrays", nested(100_000)],
    ["nested arrays in an unknown field", `{"workers":1,"x":${nested(1_000_000)},${ITEM}}`],
    ["an unclosed array", "[".repeat(1_000_000)],
  ])("gets 400: %s", async (_, body) => {
    const { status, text } = await submit(body);
    expect([status, text.length < 2_000]).toEqual([400, true]);
  });

  it("names only some of many missing files", async () => {
    const paths = Array.from({ length: 5_000 }, (_, i) => `file://${server.inputs}/none-${i}`);
    const body = { workers: 1, file_path_lister: { store_paths: paths, batch_size: 1 } };
    const { code, text } = await submit(JSON.stringify(body));
    expect(code).toBe("no_files_found");
    expect(text).toContain("and 4995 more");
    expect(text.length).toBeLessThan(4_000);
  });
});

describe("a submission at its limits", () => {
  it("runs, even with the largest number", async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const empty = '{"deep":,"text":""}'.length;
    const deep = nested(CONFIG_DEPTH_MAX - 1);
    const config = `{"deep":${deep},"text":"${"x".repeat(CONFIG_BYTES_MAX - empty - deep.length)}"}`;
    expect(config.length).toBe(CONFIG_BYTES_MAX);
    const item = `"item_list":{"items":[${"1,".repeat(2_000)}1],"batch_size":${most}}`;
    const { status, text } = await submit(
      `{"workers":${most},"timeout":${most},"queue_dead_letter_queue":{"arn":"q","max_receive_count":${most}},${item},"config":${config}}`,
    );
    expect(status, text.slice(0, 500)).toBe(200);
    const id = (JSON.parse(text) as { job_id: string }).job_id;
    const ended = await server.ended("jobs", id);
    expect([ended.status, ended.total_batch_count]).toEqual(["status_succeeded", 1]);
    expect(JSON.stringify(ended.config)).toBe(config);
  });
});

describe("a configuration beyond a limit", () => {
  const deploy = (yaml: string) => {
    const directory = join(server.dir, "hostile");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "quern.yaml"), yaml);
    writeFileSync(join(directory, "predictor.py"), ECHO);
    return server.cli(["deploy", directory]);
  };
  const api = (predictor: string, more = "") =>
    `- name: hostile\n  predictor: {path: predictor.py${predictor}}\n${more}`;

  it.each([
    ["deeply nested config", api(`, config: {a: ${nested(200)}}`), "deeper than 100"],
    ["config deeper than the parser's stack", api(`, config: {a: ${nested(20_000)}}`), "deeper than 100"],
    ["a deeply nested field", `- name: hostile\n  kind: ${nested(5_000)}\n`, "deeper than 100"],
    [
      "config that is too large",
      api(`, config: {a: ${Array.from({ length: 30_000 }, (_, i) => i * 7_919).join("-")}}`),
      "at most 262144 are allowed",
    ],
    [
      "many variables",
      api(`, env: {${Array.from({ length: 1_001 }, (_, i) => `A${i}: ""`).join(", ")}}`),
      "at most 1000 variables",
    ],
    [
      "a long address",
      api("", `  networking: {endpoint: /${"a".repeat(5_000)}}\n`),
      "at most 1024 characters",
    ],
    [
      "a long path",
      `- name: hostile\n  predictor: {path: ${"a/".repeat(5_000)}x.py}\n`,
      "at most 1024 characters",
    ],
    [
      "more memory than any machine has",
      api("", "  compute: {mem: 99999999999999999999Gi}\n"),
      "must be at most",
    ],
    ["a number without an end", api(", config: {a: 1e999}"), "1e999 cannot be passed to a predictor"],
  ])("is refused with line and column: %s", (_, yaml, words) => {
    const { code, err } = deploy(yaml);
    expect(err).toMatch(/quern\.yaml:\d+:\d+: /);
    expect(err).toContain(words);
    expect(err.length).toBeLessThan(2_000);
    expect(code).toBe(1);
  });

  it("does not affect other requests", async () => {
    expect(server.stderr).not.toMatch(/internal_error|starting it again/);
    const { job_id } = JSON.parse((await submit(`{"workers":1,${ITEM}}`)).text) as { job_id: string };
    expect((await server.ended("jobs", job_id)).status).toBe("status_succeeded");
  });
});

/** Rows as a release without this limit may have left them. */
describe.runIf(isOnSqlite)("jobs with configurations of megabytes", () => {
  const JOBS = 25;
  const MEGABYTES = 4;

  it("are listed and resumed without their configurations in memory", async () => {
    const { job_id } = JSON.parse((await submit(`{"workers":1,${ITEM}}`)).text) as { job_id: string };
    await server.ended("jobs", job_id);
    await server.stopProcesses();
    const db = openSqliteDatabase(join(server.dataDir, "quern.db"));
    const columns = (await db.all<{ name: string }>("SELECT name FROM pragma_table_info('jobs')")).map(
      ({ name }) => name,
    );
    const large = `'{"a":"' || replace(hex(zeroblob(${MEGABYTES / 2} * 1048576)), '00', 'xx') || '"}'`;
    const values: Record<string, string> = {
      job_id: "?",
      status: "'status_running'",
      closing: "NULL",
      end_time: "NULL",
      // They do not run: the test only checks that they are listed.
      paused: "'copy'",
      paused_time: "created_time",
    };
    const insert = `INSERT INTO jobs (${columns.join(", ")}) SELECT ${columns.map((name) => values[name] ?? name).join(", ")} FROM jobs WHERE job_id = ?`;
    await db.transaction(async (tx) => {
      for (let i = 0; i < JOBS; i++) {
        const id = `0${String(i).padStart(25, "0")}`;
        await tx.run(insert, [id, job_id]);
        for (const table of ["job_submissions", "job_configs"])
          await tx.run(`INSERT INTO ${table} VALUES (?, ${large})`, [id]);
      }
    });
    await db.close();
    await server.start();
    const controller = server.child("controller");
    const started = peakMiB(controller);
    const response = await server.fetch("/jobs?limit=500");
    const { jobs } = (await response.json()) as { jobs: object[] };
    expect(jobs.length).toBeGreaterThan(JOBS);
    const events = await server.fetch(`/jobs/${"0".repeat(26)}/events`);
    const { value } = await events.body!.getReader().read();
    expect(Buffer.from(value!).toString()).not.toContain("config");
    expect(Math.max(started, peakMiB(controller))).toBeLessThan(200);
  }, 180_000);
});
