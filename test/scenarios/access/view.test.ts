/** Keys with the scope `view` (docs/contract/access.md#view): what they read, and what they may not change. */
import { mkdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { decode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Operation } from "../../../src/contracts/http/operation.ts";
import { OPERATIONS } from "../../../src/contracts/http/operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const SECRETS = "env: {HARMLESS: s3cr3t-env}, config: {db: {password: s3cr3t-password, host: db1}, size: 5}";
const api = (name: string, more: string) =>
  `- name: ${name}\n  predictor: {path: predictor.py, ${SECRETS}}\n${more}`;

const server = new TestServer();
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const admin = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const ENDLESS = { do: "sleep", seconds: 60 };
let view = "";
let job = "";
/** What the parameters of paths stand for. */
const named = () => ({
  ...{ api: "jobs", job, queue: "letters", message: "m1", id: "k-none" },
  ...{ resource: "size", name: "echo", action: "stop" },
});

beforeAll(async () => {
  await server.start();
  mkdirSync(join(server.inputs, "predictions"));
  server.deploy({
    "predictor.py": OBEDIENT,
    "quern.yaml":
      api("echo", "") +
      api("jobs", "  kind: BatchAPI\n") +
      api("wide", "  kind: BatchAPI\n  compute: {cpu: 9}\n"),
  });
  server.deploy({
    "houses.csv": "50\n65\n",
    "app.yaml": "- {kind: app, name: houses}\n",
    "resources.yaml": `- {kind: environment, name: dev, data: {type: csv, path: houses.csv, schema: [size]}}
- {kind: raw_column, name: size, type: FLOAT_COLUMN, tags: {api_key: s3cr3t-tag, unit: m2}}
`,
  });
  job = await server.submit("jobs", {
    workers: 1,
    item_list: { items: [{ id: 1 }, { id: 2, do: "raise" }], batch_size: 1 },
    queue_dead_letter_queue: { arn: "letters", max_receive_count: 1 },
    output: { store_path: `file://${server.inputs}/predictions` },
    config: { api_key: "s3cr3t-key", size: 7 },
  });
  expect(server.cli(["job", "wait", "jobs", job]).code).toBe(11);
  view = server.cli(["keys", "create", "--scope", "view"]).out.trim();
});
afterAll(() => server.stop());

/** All that an administrator may read. Of the rest of the reads, one is of keys and one is of the project's files. */
const isSeen = ({ id, method }: Operation) =>
  (method === "get" && !["listKeys", "exportApi"].includes(id)) || id === "verifyJobOutput";

/** Every key signs browsers in and out for itself (sessions.test.ts). */
const isOfSession = ({ id }: Operation) => ["createSignInCode", "signIn", "signOut"].includes(id);

const ask = async ({ method, path, body }: Operation, key: string) => {
  const names: Record<string, string> = named();
  if (path.startsWith("/-/applications")) names.name = "houses";
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => names[name]!);
  const query = path === "/-/proof" ? `?nonce=${"0".repeat(64)}` : "";
  const response = await server.fetch(url + query, {
    method: method.toUpperCase(),
    headers: { ...bearer(key), ...(body === undefined ? {} : { "content-type": body.type }) },
    ...(body === undefined ? {} : { body: "{}" }),
  });
  return { status: response.status, text: await response.text() };
};

describe("a key with the scope view", () => {
  it.each(OPERATIONS.filter(isSeen).map((operation) => [operation.id, operation] as const))(
    "may %s",
    async (_id, operation) => {
      const { status, text } = await ask(operation, view);
      expect([status, text]).toEqual([200, expect.any(String)]);
    },
  );

  it.each(
    OPERATIONS.filter((one) => !isSeen(one) && !isOfSession(one)).map(
      (operation) => [operation.id, operation] as const,
    ),
  )("may not %s", async (_id, operation) => {
    const { status, text } = await ask(operation, view);
    const { code, message } = JSON.parse(text) as { code: string; message: string };
    expect([status, code]).toEqual([403, "forbidden"]);
    expect(message).toMatch(/^the key's scope is view; .* needs (admin|submit): `quern keys create --scope /);
  });

  it("may not predict", async () => {
    const response = await server.post("/echo", { id: 1 }, bearer(view));
    expect([response.status, await response.text()]).toEqual([
      403,
      expect.stringContaining("API echo needs predict: `quern keys create --scope predict --api echo`"),
    ]);
  });

  it("gets HEAD of what it may read, and no other method of it", async () => {
    const status = async (method: string, path: string) =>
      (await server.fetch(path, { method, headers: bearer(view) })).status;
    expect(await status("HEAD", "/-/apis")).toBe(200);
    expect(await status("HEAD", "/-/keys")).toBe(403);
    expect(await status("PUT", "/-/apis")).toBe(403);
    expect(await status("PUT", "/jobs")).toBe(405);
  });

  it.each([
    ...[
      "/-/%6beys",
      "/-/keys/",
      "/-//keys",
      "/-/./keys",
      "/-/keys%2f",
      "/-/KEYS",
      "/-/keys;x",
      "/-/apis/../keys",
    ],
    ...["/-/apis/echo/exp%6frt", "/-/apis/echo/export/", "/-/apis/echo%2fexport", "/-/apis/echo//export"],
    ...["/-/apis/echo/export?api_id=", "/-/apis/%2e%2e/keys"],
  ])("reads no keys and no project by the spelling %s", async (path) => {
    const { port } = new URL(server.baseUrl);
    const status = await new Promise<number>((resolve, reject) => {
      const asked = request({ port, path, headers: bearer(view) }, (answer) => {
        answer.resume();
        resolve(answer.statusCode!);
      });
      asked.once("error", reject).end();
    });
    expect([400, 403, 404]).toContain(status);
  });

  it("learns nothing of addresses that the table of operations lacks", async () => {
    expect((await server.fetch("/-/apis/echo/nothing", { headers: bearer(view) })).status).toBe(403);
  });

  it("sees configurations without secrets, which an admin key sees", async () => {
    const read = async (key: string) => {
      const paths = ["/-/apis", "/-/apis/echo", "/-/apis/jobs", `/jobs/${job}`, "/-/applications"];
      const texts = await Promise.all(
        [...paths, "/-/applications/houses"].map(async (path) =>
          (await server.fetch(path, { headers: bearer(key) })).text(),
        ),
      );
      const { api_spec } = JSON.parse(texts[3]!) as { api_spec: string };
      return [...texts, JSON.stringify(decode(Buffer.from(api_spec, "base64")))];
    };
    for (const text of await read(admin())) expect(text).toContain("s3cr3t");
    const seen = await read(view);
    for (const text of seen) expect([text.includes("s3cr3t"), text]).toEqual([false, expect.any(String)]);
    const { spec, submitted_api_spec } = JSON.parse(seen[1]!) as Record<string, unknown>;
    const predictor = { env: { HARMLESS: "***" }, config: { db: { password: "***", host: "db1" }, size: 5 } };
    expect([spec, submitted_api_spec]).toMatchObject([{ predictor }, { predictor }]);
    expect(JSON.parse(seen[3]!)).toMatchObject({ job_status: { config: { api_key: "***", size: 7 } } });
    expect(seen[5]).toContain('"tags":{"api_key":"***","unit":"m2"}');
  });

  it("is told which jobs and APIs hold the machine, as an admin key is", async () => {
    const waits = { workers: 2, item_list: { items: Array(2).fill(ENDLESS), batch_size: 1 } };
    const response = await server.post("/wide", waits, bearer(admin()));
    const { job_id: id } = (await response.json()) as { job_id: string };
    await eventually("a worker waits", async () => {
      const text = await (await server.fetch(`/wide/${id}`, { headers: bearer(view) })).text();
      return text.includes(`job ${id} of wide (9 CPU`);
    });
    await server.fetch(`/wide/${id}`, { method: "DELETE", headers: bearer(admin()) });
  });

  it("reads the audit, in which no key is", async () => {
    const audit = await (await server.fetch("/-/audit", { headers: bearer(view) })).text();
    expect(audit).toContain("/-/deploy");
    expect(audit).not.toContain(view);
  });

  it("is enough for the reading commands, and no other", () => {
    const added = server.cli(["env", "add", "seen", "--host", server.baseUrl, "--key", "-"], {
      input: `${view}\n`,
    });
    expect(added.code).toBe(0);
    const codeOf = (...args: string[]) => server.cli(["-e", "seen", ...args]).code;
    expect(codeOf("get")).toBe(0);
    expect(codeOf("job", "get", "jobs", job)).toBe(0);
    expect(codeOf("logs", "echo")).toBe(0);
    expect(codeOf("queue", "messages", "letters")).toBe(0);
    expect(codeOf("refresh", "echo")).toBe(3);
    expect(codeOf("keys", "list")).toBe(3);
  });

  it("is for the whole server", () => {
    const { code, err } = server.cli(["keys", "create", "--scope", "view", "--api", "echo"]);
    expect(code).not.toBe(0);
    expect(err).toContain("must be left out: a key of scope view or admin is for the whole server");
  });
});

describe("a key with another scope", () => {
  it("is told that reading the control plane needs view", async () => {
    const submit = server.cli(["keys", "create", "--scope", "submit"]).out.trim();
    for (const path of ["/-/apis", "/-/queues", "/-/audit"]) {
      const response = await server.fetch(path, { headers: bearer(submit) });
      expect([response.status, await response.text()]).toEqual([
        403,
        expect.stringContaining("the control plane needs view: `quern keys create --scope view`"),
      ]);
    }
  });
});
