/**
 * The rules of docs/contract/submitting.md and docs/contract/configuration.md, row by row, over real HTTP and the real
 * command line. The rules of a submission's fields are in test/scenarios/batch/submission.test.ts.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const RECORDER = `
import json
class PythonPredictor:
    def __init__(self, config):
        self.path = config["log"]
    def predict(self, payload):
        with open(self.path, "a") as log:
            log.write(json.dumps(payload) + "\\n")
`;
const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy(project(RECORDER), { wait: false });
});
afterAll(() => server.stop());

const write = (name: string, content: string) => {
  const file = join(server.inputs, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
};
const uri = (name: string) => `file://${join(server.inputs, name)}`;

describe("files", () => {
  beforeAll(() => {
    for (const name of ["img_1.png", "img_10.png", "img_2.jpg", "sub/img_3.png", "sub.d/x.png", "notes"])
      write(`files/${name}`, name);
    mkdirSync(join(server.inputs, "files", "empty"));
    symlinkSync("/etc/hostname", join(server.inputs, "files", "link.png"));
  });
  const select = async (selection: object) => {
    const body = { workers: 1, file_path_lister: { batch_size: 1, ...selection } };
    const response = await server.post("/jobs?dryRun=true", body);
    const answer = (await response.json()) as { files?: string[]; code?: string };
    return answer.files?.map((file) => file.slice(uri("files/").length)) ?? answer.code;
  };
  const all = ["img_1.png", "img_10.png", "img_2.jpg", "notes", "sub.d/x.png", "sub/img_3.png"];

  it.each<[string, string[], object, string[] | string]>([
    ["a prefix", ["files/"], {}, all],
    ["a prefix without the last slash", ["files"], {}, all],
    ["a partial stem", ["files/img_1"], {}, ["img_1.png", "img_10.png"]],
    ["a complete path", ["files/notes"], {}, ["notes"]],
    ["the order of the entries", ["files/sub/", "files/img_2"], {}, ["sub/img_3.png", "img_2.jpg"]],
    [
      "a file that two entries select is taken once",
      ["files/img_1.", "files/img"],
      {},
      ["img_1.png", "img_10.png", "img_2.jpg"],
    ],
    ["`*` does not match /", ["files/"], { includes: ["*.png"] }, "no_files_found"],
    ["`**` does", ["files/"], { includes: ["**.jpg"] }, ["img_2.jpg"]],
    ["`**` inside a segment", ["files/"], { includes: ["**_3.png"] }, ["sub/img_3.png"]],
    [
      "`?` is one character except /",
      ["files/"],
      { includes: ["**/img_?.png"] },
      ["img_1.png", "sub/img_3.png"],
    ],
    ["`[12]`", ["files/"], { includes: ["**_[12].*"] }, ["img_1.png", "img_2.jpg"]],
    ["`[!1]`", ["files/"], { includes: ["**_[!1].*"] }, ["img_2.jpg", "sub/img_3.png"]],
    ["`{a,b}`", ["files/"], { includes: ["**/{notes,img_2.jpg}"] }, ["img_2.jpg", "notes"]],
    ["case counts", ["files/"], { includes: ["**.PNG"] }, "no_files_found"],
    ["anchored at both ends", ["files/"], { includes: ["img_1.png"] }, "no_files_found"],
    [
      "includes first, then excludes",
      ["files/"],
      { includes: ["**.png"], excludes: ["**/sub**"] },
      ["img_1.png", "img_10.png"],
    ],
    ["excludes alone", ["files/"], { excludes: ["**.png"] }, ["img_2.jpg", "notes"]],
    ["empty lists are none", ["files/notes"], { includes: [], excludes: [] }, ["notes"]],
    ["null lists are none", ["files/notes"], { includes: null, excludes: null }, ["notes"]],
    ["nothing there", ["files/nothing"], {}, "no_files_found"],
    ["an empty directory", ["files/empty/"], {}, "no_files_found"],
    ["a link that leads out", ["files/link.png"], {}, "no_files_found"],
    ["outside the roots", ["../"], {}, "path_not_allowed"],
    ["out and back in", ["../inputs/files/notes"], {}, ["notes"]],
  ])("%s", async (_, paths, selection, expected) => {
    const store_paths = paths.map((path) => `file://${server.inputs}/${path}`);
    expect(await select({ store_paths, ...selection })).toEqual(expected);
  });

  it.each<[string, object, string, string]>([
    ["an unknown scheme", { store_paths: ["ftp://a/b"] }, "/file_path_lister/store_paths/0", "legal: s3://"],
    [
      "an address without a bucket",
      { store_paths: ["s3:///b"] },
      "/file_path_lister/store_paths/0",
      "s3://<bucket>/<key>",
    ],
    [
      "a relative path",
      { store_paths: ["file://a/b"] },
      "/file_path_lister/store_paths/0",
      "must be absolute",
    ],
    ["no path at all", { store_paths: [""] }, "/file_path_lister/store_paths/0", "must not be empty"],
    [
      "an open set",
      { store_paths: [uri("x")], includes: ["**.png", "[a"] },
      "/file_path_lister/includes/1",
      "never closed",
    ],
    [
      "an open brace",
      { store_paths: [uri("x")], excludes: ["{a"] },
      "/file_path_lister/excludes/0",
      "never closed",
    ],
    [
      "an empty pattern",
      { store_paths: [uri("x")], includes: [""] },
      "/file_path_lister/includes/0",
      "it is empty",
    ],
    [
      "patterns that are not a list",
      { store_paths: [uri("x")], includes: "**" },
      "/file_path_lister/includes",
      "array",
    ],
  ])("%s gets 400 with the field", async (_, selection, pointer, words) => {
    const body = { workers: 1, file_path_lister: { batch_size: 1, ...selection } };
    const response = await server.post("/jobs", body);
    const { errors } = (await response.json()) as { errors: { pointer: string; detail: string }[] };
    expect([response.status, errors]).toEqual([400, [{ pointer, detail: expect.stringContaining(words) }]]);
  });
});

describe("batching", () => {
  let jobs = 0;
  const run = async (contents: string[], batch_size: number) => {
    const name = `batching-${jobs++}`;
    contents.forEach((content, i) => {
      write(`${name}/${i}.jsonl`, content);
    });
    const log = join(server.dir, `${name}.log`);
    const id = await server.submit("jobs", {
      workers: 1,
      config: { log },
      delimited_files: { store_paths: [uri(`${name}/`)], batch_size },
    });
    const { status, reason } = await server.ended("jobs", id);
    const text = readdirSync(server.dir).includes(`${name}.log`) ? readFileSync(log, "utf8") : "";
    return { status, reason: reason?.message, batches: text.trim().split("\n").filter(Boolean) };
  };

  it.each<[string, string[], number, string[]]>([
    ["LF", ['{"a":1}\n{"a":2}\n'], 1, ['[{"a": 1}]', '[{"a": 2}]']],
    ["CRLF", ['{"a":1}\r\n{"a":2}\r\n'], 2, ['[{"a": 1}, {"a": 2}]']],
    ["a byte order mark", ['\ufeff{"a":1}\n'], 1, ['[{"a": 1}]']],
    ["blank lines", ['\n  \n{"a":1}\n\t\n\n{"a":2}\n\n'], 2, ['[{"a": 1}, {"a": 2}]']],
    ["a missing final newline", ['{"a":1}\n{"a":2}'], 1, ['[{"a": 1}]', '[{"a": 2}]']],
    [
      "a batch spans files, the last one is short",
      ['{"a":1}', '{"a":2}\n', '{"a":3}'],
      2,
      ['[{"a": 1}, {"a": 2}]', '[{"a": 3}]'],
    ],
    ["an empty file among others", ["", '{"a":1}\n', "\n"], 1, ['[{"a": 1}]']],
    [
      "64-bit integers and long decimals",
      ['{"a":12345678901234567890,"b":0.10000000000000000555}\n'],
      1,
      ['[{"a": 12345678901234567890, "b": 0.1}]'],
    ],
    ["white space inside a line", ['  { "a" :\t1 }  \n'], 1, ['[{"a": 1}]']],
  ])("%s", async (_, contents, size, batches) => {
    expect(await run(contents, size)).toEqual({ status: "status_succeeded", reason: undefined, batches });
  });

  it.each<[string, string[], RegExp]>([
    ["an array", ["{}\n[1]\n"], /0\.jsonl: line 2 .*each line must be a JSON object/],
    ["a text", ['{}\n\n"a"\n'], /0\.jsonl: line 3 /],
    ["half an object", ["{}\n", '{"a":\n'], /1\.jsonl: line 1 /],
    ["two objects on a line", ["{} {}\n"], /0\.jsonl: line 1 /],
    ["bytes that are not UTF-8", ["{}\n\ud800"], /0\.jsonl: line 2 /],
    ["nothing in any file", ["", "\n\n"], /all its files are empty/],
  ])("%s ends the job before any predict()", async (_, contents, reason) => {
    expect(await run(contents, 1)).toEqual({
      status: "status_enqueue_failed",
      reason: expect.stringMatching(reason),
      batches: [],
    });
  });
});

describe("a submission's body", () => {
  const job = JSON.stringify({ workers: 1, item_list: { items: [1], batch_size: 1 } });
  const speak = (chunks: string[], end: boolean, pauseMs: number): Promise<string> =>
    new Promise((resolve) => {
      const { port, hostname } = new URL(server.baseUrl);
      const socket = connect(Number(port), hostname);
      let answer = "";
      socket.on("data", (text) => {
        answer += String(text);
        if (answer.includes("\r\n\r\n")) socket.destroy();
      });
      socket.on("close", () => resolve(answer)).on("error", () => {});
      const next = () => {
        const chunk = chunks.shift();
        if (chunk !== undefined) socket.write(chunk, () => setTimeout(next, pauseMs));
        else if (end) socket.end();
      };
      next();
    });
  const head = (rest: string) =>
    `POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${rest}\r\n\r\n`;

  it("may arrive slowly, a byte at a time", async () => {
    const answer = await speak([head(`Content-Length: ${job.length}`), ...job], false, 2);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("may arrive in chunks", async () => {
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const parts = [
      head("Transfer-Encoding: chunked"),
      chunk(job.slice(0, 9)),
      chunk(job.slice(9)),
      "0\r\n\r\n",
    ];
    expect(await speak(parts, false, 5)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("makes no job if it is cut off", async () => {
    const count = async () =>
      ((await (await server.fetch("/jobs?limit=500")).json()) as { jobs: unknown[] }).jobs.length;
    const before = await count();
    await speak([head(`Content-Length: ${job.length}`), job.slice(0, -1)], true, 5);
    expect(await count()).toBe(before);
  });
});

describe("the configuration", () => {
  const check = (entry: string, files: Record<string, string> = {}) => {
    const directory = join(server.dir, "checked");
    mkdirSync(join(directory, "lib"), { recursive: true });
    for (const [name, text] of Object.entries({
      "p.py": ECHO,
      "lib/x.py": "",
      "quern.yaml": entry,
      ...files,
    }))
      writeFileSync(join(directory, name), text);
    const { code, out, err } = server.cli(["check", directory]);
    return code === 0 ? out.trim() : err;
  };
  const api = (fields: string, predictor = "") =>
    `- name: a\n  predictor: {path: p.py${predictor}}\n${fields}`;

  it.each<[string, string, string]>([
    ["name is required", "- predictor: {path: p.py}\n", "name: is required"],
    ["name: upper case", "- name: A\n  predictor: {path: p.py}\n", "must begin with a lower-case letter"],
    ["name: 42 characters", `- name: ${"a".repeat(42)}\n  predictor: {path: p.py}\n`, "is valid"],
    ["name: 43 characters", `- name: ${"a".repeat(43)}\n  predictor: {path: p.py}\n`, "at most 42"],
    ["kind: default", api(""), "is valid: a (RealtimeAPI)"],
    ["kind: BatchAPI", api("  kind: BatchAPI\n"), "is valid: a (BatchAPI)"],
    ["kind: unknown", api("  kind: Batch\n"), "must be RealtimeAPI, BatchAPI or TrafficSplitter"],
    ["predictor.type: python", api("", ", type: python"), "is valid"],
    ["predictor.type: other", api("", ", type: onnx"), 'must be "python"'],
    ["predictor.path is required", "- name: a\n  predictor: {}\n", "predictor.path: is required"],
    ["predictor.path: missing file", "- name: a\n  predictor: {path: q.py}\n", "q.py: file does not exist"],
    ["predictor.path: outside", "- name: a\n  predictor: {path: ../p.py}\n", "outside the project"],
    ["predictor.config: a list", api("", ", config: [1]"), "must be a map"],
    ["predictor.config: null", api("", ", config: null"), "is valid"],
    ["predictor.env: a number", api("", ", env: {A: 1}"), "must be a string; put the value in quotes"],
    ["predictor.env: reserved", api("", ", env: {QUERN_A: x}"), "names beginning with QUERN_ are reserved"],
    [
      "predictor.path: NUL",
      '- name: a\n  predictor: {path: "p\\0.py"}\n',
      "must not contain the character NUL",
    ],
    ["predictor.env: NUL", api("", ', env: {A: "x\\0y"}'), "must not contain the character NUL"],
    ["predictor.python_path", api("", ", python_path: lib"), "is valid"],
    [
      "predictor.python_path: missing",
      api("", ", python_path: nowhere"),
      "is not a directory of the project",
    ],
    [
      "predictor.python: a number",
      api("", ", python: 3.10"),
      'python: "3.11", because YAML reads 3.10 as 3.1',
    ],
    ["predictor.python: no version", api("", ", python: python3"), "must be a Python version of two numbers"],
    [
      "predictor.python: too old",
      api("", ', python: "3.6"'),
      "a: predictor.python: Python 3.6 is older than 3.9, the oldest that predictors run with; this server has ",
    ],
    ["predictor.python: not there", api("", ', python: "3.99"'), "this server has no Python 3.99 "],
    ["processes_per_replica: 0", api("", ", processes_per_replica: 0"), "at least 1"],
    ["processes_per_replica: 101", api("", ", processes_per_replica: 101"), "100"],
    ["threads_per_process: 0", api("", ", threads_per_process: 0"), "at least 1"],
    [
      "server_side_batching: size 1",
      api("", ", server_side_batching: {max_batch_size: 1, batch_interval: 1s}"),
      "max_batch_size",
    ],
    ["timeout: a duration", api("", ", timeout: 1m30s"), "is valid"],
    ["timeout: none", api("", ", timeout: 0s"), "must be a duration"],
    ["timeout: a number", api("", ", timeout: 5"), "must be a duration"],
    ["expose_errors: a text", api("", ", expose_errors: maybe"), "expose_errors"],
    ["response: text", api("", ", response: text"), "is valid"],
    [
      "response: unknown",
      api("", ", response: html"),
      'predictor.response: must be "json" or "text" (got "html")',
    ],
    [
      "response of a BatchAPI",
      api("  kind: BatchAPI\n", ", response: text"),
      "predictor.response: is for a RealtimeAPI only",
    ],
    ["monitoring.model_type: unknown", api("  monitoring: {model_type: other}\n"), "monitoring.model_type"],
    ["compute.cpu: millicores", api("  compute: {cpu: 500m}\n"), "is valid"],
    ["compute.cpu: too little", api("  compute: {cpu: 10m}\n"), "at least 20m"],
    ["compute.cpu: no quantity", api("  compute: {cpu: lots}\n"), "must be a number of CPUs"],
    ["compute.mem", api("  compute: {mem: 100M}\n"), "is valid"],
    ["compute.mem: too little", api("  compute: {mem: 1Mi}\n"), "at least 20Mi"],
    ["compute.mem: no size", api("  compute: {mem: 1GB}\n"), "must be a size such as 100M or 1Gi"],
    ["compute.gpu: negative", api("  compute: {gpu: -1}\n"), "at least 0"],
    ["networking.endpoint: its own", api("  networking: {endpoint: /a}\n"), "is valid"],
    [
      "networking.api_gateway: unknown",
      api("  networking: {api_gateway: private}\n"),
      "networking.api_gateway",
    ],
    ["networking.auth", api("  networking: {auth: none}\n"), "is valid"],
    ["networking.auth: unknown", api("  networking: {auth: maybe}\n"), "networking.auth"],
    ["autoscaling.min_replicas: 1.5", api("  autoscaling: {min_replicas: 1.5}\n"), "must be an integer"],
    [
      "autoscaling of a BatchAPI",
      api("  kind: BatchAPI\n  autoscaling: {min_replicas: 2}\n"),
      "autoscaling: is for a RealtimeAPI only",
    ],
    ["output of a RealtimeAPI", api("  output: {store_path: file:///x}\n"), "output: is for a BatchAPI only"],
    ["an unknown key, with the nearest one", api("  autoscalling: {}\n"), 'did you mean "autoscaling"?'],
    ["an unknown key inside", api("  compute: {gpus: 1}\n"), 'did you mean "gpu"?'],
    ["a duplicate key", "- name: a\n  name: b\n", 'quern.yaml:2:3: the key "name" is given twice'],
    ["two APIs of one name", `${api("")}${api("")}`, 'name: "a" is used by two APIs'],
    ["no class", api("").replace("p.py", "lib/x.py"), "PythonPredictor"],
  ])("%s", (_, entry, words) => {
    expect(check(entry)).toContain(words);
  });

  it.each<[string, string, string]>([
    [
      "a wrong argument",
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, data): pass\n",
      '"data" is not a supported argument',
    ],
    ["no predict", "class PythonPredictor:\n  def __init__(self, config): pass\n", "predict"],
    [
      "no config",
      "class PythonPredictor:\n  def __init__(self): pass\n  def predict(self): pass\n",
      '"config" is a required argument',
    ],
    ["a syntax error", "class PythonPredictor(:\n", "p.py:1"],
  ])("a class with %s is refused, without running it", (_, text, words) => {
    expect(check(api(""), { "p.py": text })).toContain(words);
  });
});
