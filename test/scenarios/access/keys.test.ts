/** Keys and their scopes (docs/contract/access.md), over real HTTP and the real command line. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { root, TestServer } from "../../harness/server.ts";

const server = new TestServer();
const keys: Record<string, { id: string; key: string }> = {};
const create = (...args: string[]) => {
  const { code, out, err } = server.cli(["keys", "create", "-o", "json", ...args]);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out) as { id: string; key: string };
};
const item = { workers: 1, item_list: { items: [1], batch_size: 1 } };

beforeAll(async () => {
  await server.start();
  server.deploy({
    ...project(ECHO),
    "quern.yaml": `${project(ECHO)["quern.yaml"]}- name: other\n  predictor: {path: predictor.py}\n- name: open\n  predictor: {path: predictor.py}\n  networking: {auth: none}\n- name: open-jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  networking: {auth: none}\n`,
  });
});
afterAll(() => server.stop());

describe("without any key", () => {
  it("APIs are open, and the control plane is closed", async () => {
    expect((await server.post("/echo", { a: 1 })).status).toBe(200);
    expect((await server.post("/jobs", item)).status).toBe(200);
    const control = await server.fetch("/-/apis");
    expect([control.status, control.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect(server.cli(["keys", "list"]).out).toContain("no keys: anyone who reaches");
  });
});

describe("once there is a key", () => {
  beforeAll(() => {
    keys.predict = create("--scope", "predict");
    keys.echo = create("--scope", "predict", "--api", "echo");
    keys.submit = create("--scope", "submit", "--api", "jobs");
    keys.admin = create("--scope", "admin");
  });

  it.each([
    [
      ["--scope", "admin", "--api", "echo"],
      "must be left out: a key of scope view or admin is for the whole server",
    ],
    [["--scope", "predict", "--expires-in", "0s"], "must be longer than 0"],
  ])("a key with %j is refused because it would grant nothing", (options, message) => {
    const { code, err } = server.cli(["keys", "create", ...options]);
    expect(code).not.toBe(0);
    expect(err).toContain(message);
  });

  const call = async (path: string, body: unknown, key: string | undefined) =>
    server.post(path, body, key === undefined ? {} : { authorization: `Bearer ${key}` });

  it.each<[string, string, string | undefined, number]>([
    ["a prediction without a key", "/echo", undefined, 401],
    ["a prediction with an unknown key", "/echo", "nobody", 401],
    ["a prediction with a key for all APIs", "/echo", "predict", 200],
    ["a prediction with the API's own key", "/echo", "echo", 200],
    ["a prediction with the key of another API", "/other", "echo", 403],
    ["a prediction with a key for jobs", "/echo", "submit", 403],
    ["a prediction with the admin's key", "/other", "admin", 200],
    ["a prediction of an open API", "/open", undefined, 200],
    ["a submission without a key", "/jobs", undefined, 401],
    ["a submission with a key for predictions", "/jobs", "predict", 403],
    ["a submission with the API's key", "/jobs", "submit", 200],
    ["a submission to an open API", "/open-jobs", undefined, 200],
    ["an admin's address with a key for jobs", "/-/apis/echo/refresh", "submit", 403],
    ["an admin's address with an admin's key", "/-/apis/echo/refresh", "admin", 200],
  ])("%s: %s", async (_, path, name, status) => {
    const response = await call(path, item, name && (keys[name]?.key ?? name));
    expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
  });

  it("reading a job, stopping it and reading the counts of its queue need the key too", async () => {
    const headers = { "x-api-key": keys.submit!.key };
    const { job_id } = (await (await server.post("/jobs", item, headers)).json()) as { job_id: string };
    for (const path of ["/jobs", `/jobs/${job_id}`, `/jobs/${job_id}/logs`, `/-/queues/${job_id}`]) {
      expect((await server.fetch(path)).status, path).toBe(401);
      expect((await server.fetch(path, { headers })).status, path).toBe(200);
    }
    expect((await server.fetch(`/jobs/${job_id}`, { method: "DELETE" })).status).toBe(401);
  });

  it("a key for other APIs does not learn from a job's queue which API the job is of", async () => {
    const own = { "x-api-key": keys.submit!.key };
    const { job_id } = (await (await server.post("/jobs", item, own)).json()) as { job_id: string };
    const created = await call("/-/keys", { scope: "submit", api: "open-jobs" }, keys.admin!.key);
    const headers = { "x-api-key": ((await created.json()) as { key: string }).key };
    const refusal = async (id: string, init: RequestInit) => {
      const response = await server.fetch(`/-/queues/${id}`, init);
      const { code, message } = (await response.json()) as { code: string; message: string };
      return { code, message, status: response.status };
    };
    for (const [init, status] of [
      [{ headers }, 403],
      [{}, 401],
    ] as const) {
      const refused = await refusal(job_id, init);
      expect(refused).toEqual(await refusal("01ARZ3NDEKTSV4RRFFQ69G5FAV".toLowerCase(), init));
      expect(refused.status).toBe(status);
    }
  });

  it("a refusal names the scope of the key, the needed scope, and how to get it", async () => {
    const wrong = (await (await call("/other", 1, keys.echo!.key)).json()) as {
      code: string;
      message: string;
    };
    expect(wrong).toMatchObject({
      code: "forbidden",
      message:
        "the key's scope is predict for echo; API other needs predict: `quern keys create --scope predict --api other`",
    });
  });

  it.runIf(isOnSqlite)("neither lists nor files contain the secret of a key", () => {
    const { out } = server.cli(["keys", "list"]);
    expect(out).toMatch(/^key +scope +api +last used +age\n/);
    expect(out).toContain(keys.echo!.id);
    const files = [
      out,
      readFileSync(join(server.dataDir, "quern.db"), "latin1"),
      readFileSync(join(server.dataDir, "routes.json"), "utf8"),
    ];
    for (const { key } of Object.values(keys)) for (const text of files) expect(text).not.toContain(key);
  });

  it("a revoked key is refused as soon as the revocation is answered", async () => {
    for (let round = 0; round < 5; round++) {
      const { id, key } = create("--scope", "predict");
      expect((await call("/echo", 1, key)).status).toBe(200);
      expect(server.cli(["keys", "revoke", id]).out).toBe(`revoked key ${id}\n`);
      expect((await call("/echo", 1, key)).status).toBe(401);
    }
    const again = server.cli(["keys", "revoke", "k-nobody"]);
    expect([again.code, again.err]).toEqual([4, expect.stringContaining("quern keys list")]);
  });

  it("keys survive a crash of the controller and the gateway", async () => {
    for (const role of ["controller", "gateway"] as const) {
      process.kill(server.child(role), "SIGKILL");
      let last: unknown;
      await eventually(
        "keys are asked for again",
        async () => {
          const statuses = await Promise.all(
            [undefined, keys.echo!.key].map(async (key) => (await call("/echo", 1, key)).status),
          ).catch((error: Error) => (last = error.cause ?? error));
          last = statuses;
          return Array.isArray(statuses) && statuses.join() === "401,200";
        },
        30_000,
        () => `${String(last)}\n${server.stderr}`,
      );
    }
  });

  it("the command line sends the key of its environment, and the admin token to its own server only", () => {
    const added = server.cli(["env", "add", "far", "--host", server.baseUrl, "--key", "-"], {
      input: `${keys.submit!.key}\n`,
    });
    expect(added.code).toBe(0);
    expect(server.cli(["-e", "far", "job", "list", "jobs"]).code).toBe(0);
    expect(server.cli(["-e", "far", "get"]).code).toBe(3);
    expect(server.cli(["get"]).code).toBe(0);
    expect(server.cli(["env", "list"]).out).toMatch(/^env +host +key\nlocal \* .*\nfar +http:\S+ +yes\n$/);
    expect(server.cli(["env", "use", "far"]).code).toBe(0);
    expect(server.cli(["get"]).code).toBe(3);
    expect(server.cli(["env", "remove", "far"]).code).toBe(0);
    expect(server.cli(["get"]).code).toBe(0);
    expect(server.cli(["-e", "far", "get"])).toMatchObject({
      code: 2,
      err: expect.stringContaining('no environment "far"'),
    });
  });

  it("the address of an environment contains no password", () => {
    expect(server.cli(["env", "add", "far", "--host", "http://me:secret@localhost:1"])).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        "--host must not have a user or password; give the server's key with --key",
      ),
    });
  });

  it.each(["__proto__", "a b", "", "-x"])("an environment cannot be called %j", (name) => {
    expect(server.cli(["env", "add", "--host", "http://localhost:1", "--", name]).code).toBe(2);
  });

  it("an environment that was not added is unknown, even if JavaScript has a property of its name", () => {
    expect(server.cli(["-e", "constructor", "get"])).toMatchObject({ code: 2 });
  });

  it.each([
    ["--scope", "everything"],
    ["--scope", "predict", "--api", ""],
  ])("%s %s is refused", (...args) => {
    expect(server.cli(["keys", "create", ...args]).code).not.toBe(0);
  });
});

describe("a server on more than loopback", () => {
  it("needs a key first, which can be made before it runs", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "quern-keys-"));
    const outside = new TestServer({ QUERN_DATA_DIR: dataDir, QUERN_LISTEN: "0.0.0.0:0" });
    const env = { ...process.env, ...outside.ownDatabase, QUERN_DATA_DIR: dataDir, XDG_CONFIG_HOME: dataDir };
    const quern = (...args: string[]) =>
      spawnSync(process.execPath, [join(root, "bin", "quern"), ...args], {
        env,
        encoding: "utf8",
        timeout: 30_000,
      });
    const refused = quern("up", "--listen", "0.0.0.0:0");
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining(`quern keys create --scope predict --data-dir ${dataDir}`),
    ]);
    const made = quern("keys", "create", "--scope", "predict", "--data-dir", dataDir);
    expect([made.status, made.stdout]).toEqual([0, expect.stringMatching(/^quern_[\w-]{32}\n$/)]);
    expect(quern("keys", "create", "--scope", "predict").stderr).toContain("--data-dir DIR");
    const other = quern("keys", "create", "--scope", "predict", "--data-dir", dataDir, "--if-none");
    expect([other.status, other.stdout, other.stderr]).toEqual([0, "", "there is a key already\n"]);
    expect(quern("keys", "create", "--scope", "predict", "--if-none").stderr).toContain("needs --data-dir");
    rmSync(outside.dataDir, { recursive: true, force: true });
    Object.assign(outside, { dataDir });
    await outside.start({}, ["--listen", "0.0.0.0:0", "--public-url", "https://models.example.com/prod/"]);
    outside.deploy(project(ECHO), { wait: false });
    // The token of the data directory goes to its server, by whatever name of this machine it is asked for.
    const { port } = new URL(outside.baseUrl);
    for (const host of ["127.0.0.1", "localhost", "0.0.0.0"]) {
      const asked = spawnSync(process.execPath, [join(root, "bin", "quern"), "get", "jobs"], {
        env: { ...env, QUERN_HOST: `http://${host}:${port}` },
        encoding: "utf8",
      });
      expect([host, asked.status, asked.stderr]).toEqual([host, 0, ""]);
      expect(asked.stdout).toContain("endpoint: https://models.example.com/prod/jobs\n");
    }
    const elsewhere = spawnSync(process.execPath, [join(root, "bin", "quern"), "get"], {
      env: { ...env, QUERN_HOST: `http://127.0.0.2:${port}` },
      encoding: "utf8",
    });
    expect([elsewhere.status, elsewhere.stderr]).toEqual([3, expect.stringContaining("key")]);
    const submitted = await outside.post(
      "/jobs",
      { workers: 1, item_list: { items: [1], batch_size: 1 } },
      { authorization: `Bearer ${made.stdout.trim()}` },
    );
    expect(submitted.status).toBe(403);
    const admin = readFileSync(join(dataDir, "admin-token"), "utf8").trim();
    const accepted = await outside.post(
      "/jobs",
      { workers: 1, item_list: { items: [1], batch_size: 1 } },
      { authorization: `Bearer ${admin}` },
    );
    const { job_id } = (await accepted.json()) as { job_id: string };
    expect(accepted.headers.get("location")).toBe(`https://models.example.com/prod/jobs/${job_id}`);
    expect(outside.cli(["keys", "create", "--scope", "predict", "--data-dir", dataDir]).err).toContain(
      "in use",
    );
    await outside.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
