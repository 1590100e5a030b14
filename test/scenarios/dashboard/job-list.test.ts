/** The list of the jobs of all APIs (docs/contract/jobs.md#list-of-all-jobs), over HTTP and by the command line. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OBEDIENT } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import type { JobView } from "../../harness/views.ts";

const server = new TestServer();
const ids: string[] = [];
const [GOOD, BAD, ENDLESS] = [{ id: 1 }, { id: 2, do: "raise" }, { id: 3, do: "sleep", seconds: 600 }];
beforeAll(async () => {
  await server.start();
  const api = (name: string) => `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py}\n`;
  server.deploy({ "p.py": OBEDIENT, "quern.yaml": api("iris") + api("words") });
  for (const [name, item] of [
    ["iris", GOOD],
    ["words", BAD],
    ["iris", BAD],
    ["words", ENDLESS],
  ] as const)
    ids.push(await server.submit(name, { workers: 1, item_list: { items: [item], batch_size: 1 } }));
  for (const [i, name] of ["iris", "words", "iris"].entries()) await server.ended(name, ids[i]!);
});
afterAll(() => server.stop());

const list = async (query: string) => {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const response = await server.fetch(`/-/jobs?${query}`, { headers: { authorization: `Bearer ${token}` } });
  const body = (await response.json()) as {
    jobs: JobView[];
    next_cursor: string | null;
    count: number;
    message: string;
  };
  return { ...body, status: response.status, at: body.jobs?.map(({ job_id }) => ids.indexOf(job_id)) };
};

describe("the jobs of all APIs", () => {
  it.each([
    ["", [3, 2, 1, 0]],
    ["api=iris", [2, 0]],
    ["status=status_succeeded", [0]],
    ["status=status_succeeded&status=status_completed_with_failures", [2, 1, 0]],
    ["search=WOR", [3, 1]],
    ["search=nobody", []],
    ["created_before=2020-01-01", []],
    ["created_after=2020-01-01T00:00:00Z&search=i&status=status_running", []],
    ["created_after=2020-01-01T00:00:00Z&search=o&status=status_running&status=status_enqueuing", [3]],
  ])("are filtered by %j, newest first, and counted", async (query, at) => {
    expect(await list(query)).toMatchObject({ status: 200, at, count: at.length, next_cursor: null });
  });

  it("are filtered by the exact times of their submissions", async () => {
    const { created_time: time } = await server.job("words", ids[1]!);
    expect((await list(`created_before=${time}`)).at).toEqual([0]);
    expect((await list(`created_after=${time}`)).at).toEqual([3, 2, 1]);
  });

  it("come page by page, each with the number of all", async () => {
    const { at, next_cursor, count } = await list("limit=3");
    expect([at, count]).toEqual([[3, 2, 1], 4]);
    expect(await list(`limit=3&cursor=${next_cursor}`)).toMatchObject({
      at: [0],
      count: 4,
      next_cursor: null,
    });
  });

  it("have the fields of the list of an API", async () => {
    const [ours] = (await list(`search=${ids[0]}`)).jobs;
    const response = await server.fetch("/iris?limit=1&cursor=7zzzzzzzzzzzzzzzzzzzzzzzzz");
    const theirs = ((await response.json()) as { jobs: JobView[] }).jobs[0];
    expect(Object.keys(ours!).sort()).toEqual(
      expect.arrayContaining(["api_name", "batch_metrics", "job_id"]),
    );
    expect((await list(`search=${ids[2]}`)).jobs[0]).toEqual(theirs);
  });

  it.each([
    ["status=running", "status must be one of"],
    ["created_after=noon", "created_after must be a time such as"],
    ["cursor=1", "cursor must be the next_cursor"],
    ["limit=0", "limit must be an integer from 1 to 500"],
    [`search=${"x".repeat(201)}`, "search must have at most 200 characters"],
  ])("are refused with %j", async (query, why) => {
    expect(await list(query)).toMatchObject({ status: 400, message: expect.stringContaining(why) });
  });

  it("are shown by the command line, with their number", () => {
    const { code, out } = server.cli(["job", "list", "--status", "succeeded", "--status", "running"]);
    expect([code, out]).toEqual([0, expect.stringMatching(/^api +job id +status/)]);
    expect(out.trim().split("\n").at(-1)).toBe("2 of 2 jobs");
    const found = server.cli(["job", "list", "words", "--search", ids[1]!, "-o", "json"]);
    expect(JSON.parse(found.out)).toMatchObject({ count: 1, jobs: [{ job_id: ids[1] }] });
    expect(server.cli(["job", "list", "iris", "--status", "succeeded"]).out).toContain(ids[0]);
  });
});
