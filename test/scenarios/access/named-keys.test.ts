/** Names of keys and their last use (docs/contract/access.md#key-names), over real HTTP and the real command line. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const NAME = "nightly batch 🚀";
const server = new TestServer();
interface Listed {
  id: string;
  name: string | null;
  last_used_time: string | null;
}
let listed: Listed & { key: string };

const create = (...args: string[]) =>
  JSON.parse(server.cli(["keys", "create", "-o", "json", ...args]).out) as Listed & { key: string };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const list = async (id: string) => {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const response = await server.fetch("/-/keys", { headers: bearer(token) });
  return ((await response.json()) as { keys: Listed[] }).keys.find((key) => key.id === id);
};
const minuteOf = (ms: number) => ms - (ms % 60_000);
const lastMs = async (id: string) => Date.parse((await list(id))?.last_used_time ?? "");

beforeAll(async () => {
  await server.start();
  server.deploy(project(ECHO));
  listed = create("--scope", "predict", "--name", NAME);
});
afterAll(() => server.stop());

describe("a key's name", () => {
  it("is shown when it is created, in the list, and after a rotation", () => {
    expect(listed).toMatchObject({ name: NAME, last_used_time: null });
    const { out } = server.cli(["keys", "list"]);
    expect(out).toMatch(/^key +name +scope +api +last used +age\n/);
    expect(out).toMatch(new RegExp(`${listed.id} +${NAME} +predict +all +never +\\d`, "u"));
    const before = create("--scope", "predict", "--name", "rotated");
    const rotated = JSON.parse(server.cli(["keys", "rotate", before.id, "-o", "json"]).out) as Listed;
    expect([rotated.name, rotated.id === before.id]).toEqual(["rotated", false]);
  });

  it("is in the audit's lines: of the key that is changed, and of the key that changes", async () => {
    const admin = create("--scope", "admin", "--name", "ada");
    await server.fetch(`/-/keys/${create("--scope", "predict", "--name", "old").id}`, {
      method: "DELETE",
      headers: bearer(admin.key),
    });
    const audit = server.cli(["audit"]).out;
    expect(audit).toMatch(
      new RegExp(`admin-token 127.0.0.1 POST /-/keys 200 k-\\w+ "${NAME}" \\(predict\\)\n`, "u"),
    );
    expect(audit).toMatch(
      new RegExp(`${admin.id} "ada" 127.0.0.1 DELETE /-/keys/k-\\w+ 200 k-\\w+ "old" \\(predict\\)\n`),
    );
  });

  it.each(["", " x", "x ", "a\nb", "a".repeat(101)])("is refused if it is %j", async (name) => {
    const { code, err } = await server.cliBeside(["keys", "create", "--scope", "predict", "--name", name]);
    expect(code).not.toBe(0);
    expect(err).toContain("must be 1 to 100 characters, without control characters and without spaces");
  });

  it("may be given without a server, with the same checks", async () => {
    const stopped = new TestServer();
    const offline = (...more: string[]) =>
      stopped.cli(["keys", "create", "-o", "json", "--data-dir", stopped.dataDir, ...more]);
    expect(offline("--scope", "view", "--api", "echo")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--api must be left out") as string,
    });
    expect(offline("--scope", "predict", "--name", "a\tb").err).toContain("--name must be 1 to 100");
    const made = offline("--scope", "predict", "--name", "first", "--rate", "5/s", "--expires-in", "1h");
    expect(JSON.parse(made.out)).toMatchObject({
      ...{ name: "first", rate: { requests: 5, seconds: 1 } },
      expires_time: expect.any(String),
    });
    await stopped.stop();
  });
});

describe("the last use of a key", () => {
  it("is the minute of a prediction, and survives a restart", async () => {
    const startMs = minuteOf(Date.now());
    expect((await server.post("/echo", 1, bearer(listed.key))).status).toBe(200);
    await eventually("it is listed", async () => (await lastMs(listed.id)) >= startMs);
    const usedMs = await lastMs(listed.id);
    expect([usedMs % 60_000, usedMs <= Date.now()]).toEqual([0, true]);
    await server.stopProcesses();
    await server.start();
    expect(await lastMs(listed.id)).toBe(usedMs);
  });

  it.each([
    ["a request to the control plane", "admin", "/-/version", 200],
    ["a job", "submit", "/jobs", 200],
    ["a request that is refused", "submit", "/-/version", 403],
  ])("counts %s", async (_, scope, path, status) => {
    const { id, key } = create("--scope", scope);
    expect((await server.fetch(path, { headers: bearer(key) })).status).toBe(status);
    await eventually("it is listed", async () => !Number.isNaN(await lastMs(id)));
  });
});
