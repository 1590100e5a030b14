/** The command line as users see it: stdout, stderr and the exit code. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

describe("the command line", () => {
  const server = new TestServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  const file = (name: string, content: unknown) => {
    writeFileSync(join(server.dir, name), JSON.stringify(content));
    return join(server.dir, name);
  };

  it("reports that nothing is deployed yet", () => {
    expect(server.cli(["get"])).toEqual({ code: 0, out: "no apis are deployed\n", err: "" });
    expect(server.cli(["get", "-o", "json"]).out).toBe("[]\n");
  });

  it("deploys, and reports what it did", () => {
    expect(server.deploy(project(OBEDIENT))).toBe("creating echo (RealtimeAPI)\ncreated jobs (BatchAPI)\n");
    expect(server.deploy(project(OBEDIENT))).toBe("echo is up to date\njobs is up to date\n");
    expect(
      server.deploy({ ...project(OBEDIENT), "added.txt": "a file updates every API of its directory" }),
    ).toBe("updating echo (RealtimeAPI)\nupdated jobs (BatchAPI)\n");
    expect(
      JSON.parse(server.cli(["deploy", join(server.dir, "project"), "echo", "-o", "json"]).out),
    ).toMatchObject([
      { api: "echo", kind: "RealtimeAPI", message: "echo is up to date", endpoint: `${server.baseUrl}/echo` },
    ]);
  });

  it("leaves out files that do not belong to a project", () => {
    const files = {
      ...project(OBEDIENT),
      ".secret": "x",
      "node_modules/a.js": "x",
      "venv/pyvenv.cfg": "x",
      "data/big.bin": "x",
      "data/keep.bin": "x",
      ".quernignore": "data/*\n!data/keep.bin\n",
      ".env": "FROM_FILE=yes\n",
    };
    server.deploy({
      ...files,
      "predictor.py":
        "import os\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return [sorted(p for d, _, f in os.walk('.') for p in f if not p.endswith('.pyc')), os.environ.get('FROM_FILE')]\n",
    });
    expect(JSON.parse(server.cli(["predict", "echo", "-"], { input: "1" }).out)).toEqual([
      [".env", "keep.bin", "predictor.py"],
      "yes",
    ]);
    server.deploy(project(OBEDIENT));
  });

  it("prints tables and JSON", () => {
    expect(server.cli(["get"]).out).toMatch(
      /^env {5}batch api {3}running jobs {3}latest job id {3}last update\nlocal {3}jobs {8}0 {14}- {15}\d+s\n\nenv {5}realtime api {3}status {3}up-to-date {3}requested {3}last update {3}avg request {3}2XX\nlocal {3}echo {11}live {5}1 {12}1 {11}\d+s {12}\S+.*\n$/,
    );
    expect(JSON.parse(server.cli(["get", "echo", "-o", "json"]).out)).toMatchObject({
      name: "echo",
      status: "live",
      endpoint: `${server.baseUrl}/echo`,
      spec: { predictor: { path: "predictor.py" } },
    });
  });

  it("predicts from a file and from stdin", () => {
    expect(server.cli(["predict", "echo", file("p.json", { id: 7 })])).toEqual({
      code: 0,
      out: "7\n",
      err: "",
    });
    expect(server.cli(["predict", "echo", "-"], { input: '{"do":"raise"}' })).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining("`quern logs echo` has the traceback"),
    });
  });

  it("checks without changing anything, and reports all errors", () => {
    const wrong = join(server.dir, "wrong");
    mkdirSync(wrong);
    writeFileSync(
      join(wrong, "quern.yaml"),
      "- name: a\n  predictor: {path: missing.py}\n- name: b\n  predictor: {path: p.py}\n" +
        "- name: c\n  compute: {cpu: lots}\n  predictor: {path: gone.py, python_path: nowhere}\n",
    );
    writeFileSync(
      join(wrong, "p.py"),
      "class PythonPredictor:\n    def __init__(self): pass\n    def predict(self, data): pass\n",
    );
    const { code, out, err } = server.cli(["check", wrong]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(
      "quern.yaml:2:15: a: predictor.path: missing.py: file does not exist in the project",
    );
    expect(err).toContain(
      'p.py:2: b: class PythonPredictor: method "__init__(self)": "config" is a required argument',
    );
    expect(err).toContain(
      'p.py:3: b: class PythonPredictor: method "predict(self, data)": "data" is not a supported argument',
    );
    // An entry with one error is still checked for others.
    expect(err).toContain("quern.yaml:6:13: c: compute.cpu: must be a number of CPUs");
    expect(err).toContain("quern.yaml:7:15: c: predictor.path: gone.py: file does not exist in the project");
    expect(err).toContain('quern.yaml:7:30: c: predictor.python_path: "nowhere" is not a directory');
    expect(server.cli(["check", join(server.dir, "project", "quern.yaml")])).toMatchObject({
      code: 0,
      out: expect.stringContaining("is valid: echo (RealtimeAPI), jobs (BatchAPI)"),
    });
  });

  it("refuses to change the kind of a deployed API", () => {
    const files = project(OBEDIENT);
    files["quern.yaml"] = files["quern.yaml"]!.replace("- name: echo\n", "- name: echo\n  kind: BatchAPI\n");
    expect(() => server.deploy(files)).toThrow(
      "cannot change from RealtimeAPI while deployed; delete the API first",
    );
    server.deploy(project(OBEDIENT));
  });

  it("submits, lists, shows and waits; the exit code depends on the end", () => {
    const job = (items: unknown[], extra: object = {}) =>
      file("job.json", { workers: 1, ...extra, item_list: { items, batch_size: 1 } });
    const submitted = server.cli(["job", "submit", "jobs", job([1, 2, 3])]);
    expect(submitted).toMatchObject({ code: 0, err: "" });
    const id = submitted.out.trim();
    const waited = server.cli(["job", "wait", "jobs", id]);
    expect(waited.code).toBe(0);
    expect(waited.out).toContain("status: succeeded\n");
    expect(waited.out).toMatch(
      /total {3}succeeded {3}failed {3}avg time per batch\n3 {7}3 {11}0 {8}[\d.e-]+ ms/,
    );
    expect(server.cli(["get", "jobs"]).out).toMatch(
      new RegExp(`^job id {23}status {6}progress {3}start time {15}duration\n${id} {3}succeeded {3}3/3 `),
    );
    expect(server.cli(["get", "jobs", id]).out).toBe(server.cli(["job", "get", "jobs", id]).out);
    expect(JSON.parse(server.cli(["job", "get", "jobs", id, "-o", "json"]).out)).toMatchObject({
      job_status: { job_id: id },
      endpoint: `${server.baseUrl}/jobs/${id}`,
    });
    expect(server.cli(["job", "submit", "jobs", job([{ do: "raise" }, 1]), "--wait"]).code).toBe(11);
    expect(server.cli(["job", "submit", "jobs", job([{ do: "kill" }]), "--wait"]).code).toBe(10);
    expect(
      server.cli(["job", "submit", "jobs", job([{ do: "sleep", seconds: 9 }], { timeout: 1 }), "--wait"])
        .code,
    ).toBe(13);
    const slow = server.cli(["job", "submit", "jobs", job([{ do: "sleep", seconds: 9 }])]).out.trim();
    expect(server.cli(["job", "wait", "jobs", slow, "--timeout", "1"])).toMatchObject({
      code: 124,
      err: expect.stringContaining("it continues"),
    });
    expect(server.cli(["job", "stop", "jobs", slow])).toMatchObject({
      code: 0,
      out: `stopped job ${slow}\n`,
    });
    expect(server.cli(["job", "wait", "jobs", slow]).code).toBe(12);
    expect(server.cli(["delete", "jobs", id])).toMatchObject({
      code: 5,
      err: expect.stringContaining("cannot be stopped: it has ended"),
    });
  });

  it("follows a job's log until it ends", () => {
    const id = server
      .cli([
        "job",
        "submit",
        "jobs",
        file("job.json", {
          workers: 1,
          item_list: {
            items: [
              { do: "print", times: 2 },
              { do: "sleep", seconds: 0.5 },
            ],
            batch_size: 1,
          },
        }),
      ])
      .out.trim();
    const { code, out } = server.cli(["job", "logs", "jobs", id, "--follow"]);
    expect(code).toBe(0);
    expect(out).toMatch(/ server started enqueuing batches\n/);
    expect(out).toMatch(/ b-[0-9a-f]{8} y{999}\n/);
    expect(out).toMatch(/ server the job ended: status_succeeded\n$/);
  });

  it.each([
    [["nonsense"], 2, "unknown command"],
    [["get", "-o", "xml"], 2, "Allowed choices are table, json"],
    [["predict", "echo"], 2, "there is no file echo; give an API and a JSON file"],
    [["logs"], 2, "name the API, or an application with -a: this directory has no configuration"],
    [["refresh"], 2, "this directory has no configuration"],
    [["delete"], 2, "name the API, or an application with -a"],
    [["get", "nobody"], 4, "nobody is not deployed"],
    [["get", "jobs", "nonsense"], 4, 'has no job "nonsense"'],
    [["deploy", "/nowhere"], 2, "/nowhere does not exist"],
  ])("%j exits with code %i and says why", (args, code, message) => {
    const result = server.cli(args);
    expect([result.code, result.out]).toEqual([code, ""]);
    expect(result.err).toContain(message);
  });

  it("needs the admin token, and says where to find it", async () => {
    const other = server.cli(["get"], { cwd: server.dir });
    expect(other.code).toBe(0);
    expect(await (await server.fetch("/-/apis")).json()).toMatchObject({
      status: 401,
      code: "unauthorized",
      message: expect.stringContaining("admin-token"),
    });
    expect((await server.fetch("/-/apis", { headers: { "x-api-key": "guess" } })).status).toBe(401);
    expect((await server.fetch("/-/livez")).status).toBe(200);
    expect((await server.fetch("/-/readyz")).status).toBe(200);
    expect((await server.fetch("/-/internal/routes")).status).toBe(401);
  });

  it("prints versions, and reports a server that does not answer", async () => {
    expect(server.cli(["version"]).out).toMatch(
      /^cli version: \d+\.\d+\.\d+\nserver version: \d+\.\d+\.\d+\n$/,
    );
    const nobody = new TestServer({ QUERN_HOST: "http://127.0.0.1:9" });
    expect(nobody.cli(["get"])).toMatchObject({
      code: 6,
      out: "",
      err: expect.stringContaining("`quern up`"),
    });
    await nobody.stop();
    const bare = new TestServer({ QUERN_HOST: "127.0.0.1:9" });
    expect(bare.cli(["get"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("must be a URL such as"),
    });
    await bare.stop();
    const empty = new TestServer({ QUERN_HOST: "" });
    expect(empty.cli(["get"]).err).toContain("no server responds at http://127.0.0.1:8420");
    await empty.stop();
  });

  it("deletes an API and its address", async () => {
    expect(server.cli(["delete", "echo"])).toMatchObject({ code: 0, out: "deleting echo\n" });
    expect((await server.post("/echo", 1)).status).toBe(404);
    await eventually("its replica has left", () => server.workers().length === 0);
    expect(server.cli(["delete", "echo"]).code).toBe(4);
  });
});
