/**
 * The input of a job's batches: paths, plain and compressed files (docs/contract/submitting.md), over real HTTP.
 */
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** Writes each batch to a file of its own process, as it was given. */
const RECORDER = `
import json, os, threading, time
class PythonPredictor:
    def __init__(self, config):
        self.log = open("%s.%d" % (config["log"], os.getpid()), "a")
        self.wait = config.get("wait")
        if config.get("die"): threading.Timer(1, os._exit, (9,)).start()
    def predict(self, payload):
        while self.wait and not os.path.exists(self.wait): time.sleep(0.01)
        self.log.write(json.dumps(payload) + "\\n")
        self.log.flush()
`;

/** A store with one file that never sends a byte. */
const silentStore = createServer((request, response) => {
  if (request.method === "HEAD") response.writeHead(200, { etag: '"1"', "content-length": "9" }).end();
  else if (request.url!.includes("list-type"))
    response.end(
      "<ListBucketResult><Contents><Key>in.jsonl</Key><Size>9</Size></Contents></ListBucketResult>",
    );
});

const server = new TestServer();
beforeAll(async () => {
  await new Promise<void>((resolve) => silentStore.listen(0, "127.0.0.1", resolve));
  const { port } = silentStore.address() as AddressInfo;
  await server.start({
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "key",
    AWS_SECRET_ACCESS_KEY: "secret",
  });
  server.deploy(project(RECORDER), { wait: false });
});
afterAll(async () => {
  silentStore.closeAllConnections();
  silentStore.close();
  await server.stop();
});

it("a job ends if its workers die repeatedly while it is enqueued", async () => {
  const id = await server.submit("jobs", {
    workers: 1,
    config: { log: join(server.dir, "dying"), die: true },
    delimited_files: { store_paths: ["s3://bucket/in.jsonl"], batch_size: 1 },
  });
  expect(await server.ended("jobs", id)).toMatchObject({
    status: "status_worker_error",
    reason: {
      code: "workers_keep_dying",
      message: expect.stringContaining("3 workers in a row died while they had no batch") as string,
    },
  });
});

let jobs = 0;
/** Runs a job of one worker; resolves to its batches in the order of processing. */
async function run(
  input: Record<string, unknown>,
): Promise<{ status: string; batches: unknown[]; reason?: string }> {
  const name = `log-${jobs++}`;
  const id = await server.submit("jobs", { workers: 1, config: { log: join(server.dir, name) }, ...input });
  const { status, reason } = await server.ended("jobs", id);
  const batches = recorded(server, name);
  return { status, batches, ...(reason && { reason: reason.message }) };
}

/** The batches that the recorders of a job wrote down, in the order of their writing. */
function recorded(from: TestServer, name: string): unknown[] {
  return readdirSync(from.dir)
    .filter((file) => file.startsWith(`${name}.`))
    .flatMap((file) => readFileSync(join(from.dir, file), "utf8").split("\n").filter(Boolean))
    .map((line) => JSON.parse(line) as unknown);
}

/**
 * Kills the controller at a commit of the enqueuing. Resolves to the ended job, its distinct batches in no order, and
 * where it resumed. A batch that ran at the kill runs again in another process.
 */
async function runThroughKill(killAt: string, input: Record<string, unknown>) {
  const killed = new TestServer({ QUERN_ALLOW_LOCAL_ROOT: server.inputs });
  await killed.start({ QUERN_TEST_KILL_AT: killAt });
  killed.deploy(project(RECORDER), { wait: false });
  const config = { log: join(killed.dir, "log") };
  const id = await killed.submit("jobs", { workers: 1, config, ...input });
  await eventually("it was killed", () => killed.stderr.includes("the controller ended (SIGKILL)"));
  const { status, total_batch_count } = await killed.ended("jobs", id);
  const log = await (await killed.fetch(`/jobs/${id}/logs`)).text();
  const batches = new Set(recorded(killed, "log").map((batch) => JSON.stringify(batch)));
  await killed.stop();
  return {
    status,
    total: total_batch_count!,
    batches: [...batches].map((batch) => JSON.parse(batch) as unknown[]),
    wentOnAt: Number(/resumed enqueuing after (\d+)/.exec(log)?.[1]),
  };
}

describe("a file that is changed in place while a job has it open", () => {
  it("ends the job, and no batch contains the new content", async () => {
    const lines = Array.from({ length: 12_000 }, (_, id) => `{"id":${id},"text":"${"o".repeat(1000)}"}\n`);
    write("in-place.jsonl", lines.join(""));
    const wait = join(server.dir, "go-on");
    const config = { log: join(server.dir, "in-place"), wait };
    const delimited_files = { store_paths: [uri("in-place.jsonl")], batch_size: 10 };
    const id = await server.submit("jobs", { workers: 1, config, delimited_files });
    await eventually(
      "a worker runs",
      async () => (await server.job("jobs", id)).worker_counts?.running === 1,
    );
    const file = openSync(join(server.inputs, "in-place.jsonl"), "r+");
    const { size } = fstatSync(file);
    const last = lines.at(-1)!.replaceAll("o", "x");
    writeSync(file, last, size - last.length);
    closeSync(file);
    writeFileSync(wait, "");
    const job = await server.ended("jobs", id);
    expect(job).toMatchObject({ status: "status_enqueue_failed", reason: { code: "input_changed" } });
    expect(job.reason!.message).toContain("in-place.jsonl was changed");
    expect(JSON.stringify(recorded(server, "in-place"))).not.toContain("xxx");
  });
});

function write(name: string, content: string | Buffer): void {
  const file = join(server.inputs, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
const uri = (name: string) => `file://${join(server.inputs, name)}`;

describe("file_path_lister", () => {
  it("gives predict() the selected paths, in order, grouped into batches", async () => {
    write("images/img_1.png", "");
    write("images/img_2.png", "");
    write("images/more/img_3.png", "");
    write("images/notes.txt", "");
    write("images/ö b.png", "");
    const { status, batches } = await run({
      file_path_lister: {
        store_paths: [uri("images/")],
        includes: ["**.png"],
        excludes: ["**_2.png"],
        batch_size: 2,
      },
    });
    expect(status).toBe("status_succeeded");
    expect(batches).toEqual([
      [uri("images/img_1.png"), uri("images/more/img_3.png")],
      [uri("images/ö b.png")],
    ]);
  });

  it("fails during enqueuing if the paths of a batch are too long", async () => {
    const long = `long/${"d".repeat(200)}/${"e".repeat(200)}/`;
    for (let i = 0; i < 700; i++) write(`${long}${i}`, "");
    const { status, batches, reason } = await run({
      file_path_lister: { store_paths: [uri("long/")], batch_size: 100_000 },
    });
    expect([status, batches]).toEqual(["status_enqueue_failed", []]);
    expect(reason).toMatch(/with file:.* its batch has 26\d+ bytes; a batch must be smaller than 262144/);
  });

  it("continues after a kill during enqueuing, with each path once", async () => {
    for (let i = 0; i < 40_000; i++) write(`many/${String(i).padStart(150, "0")}`, "");
    const { status, total, batches, wentOnAt } = await runThroughKill("segment-after-commit", {
      file_path_lister: { store_paths: [uri("many/")], batch_size: 7 },
    });
    expect([status, total]).toEqual(["status_succeeded", Math.ceil(40_000 / 7)]);
    expect(wentOnAt).toBeGreaterThan(0);
    expect(wentOnAt).toBeLessThan(total);
    const handled = batches.flat();
    expect([handled.length, new Set(handled).size]).toEqual([40_000, 40_000]);
  });

  it("continues after a kill after the last commit, without truncating its own file", async () => {
    for (let i = 0; i < 100; i++) write(`few/${i}`, "");
    const { status, total, batches, wentOnAt } = await runThroughKill("segment-after-commit", {
      file_path_lister: { store_paths: [uri("few/")], batch_size: 7 },
    });
    expect([status, wentOnAt]).toEqual(["status_succeeded", total]);
    expect(new Set(batches.flat()).size).toBe(100);
  });
});

describe("compressed files", () => {
  const lines = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => `{"id": ${from + i}, "big": 12345678901234567890}\n`).join("");
  // Zstandard of `{"id": 5}\n{"id": 6}\n`, made by the reference tool: nothing on this Node can make one.
  const zst = Buffer.from("KLUv/QRYoQAAeyJpZCI6IDV9CnsiaWQiOiA2fQrhVQeP", "base64");

  it("are read like plain files: .gz, also with several members, and .zst, mixed in one stream", async () => {
    write("mixed/a.jsonl", '{"id": 0}\n{"id": 1}');
    const members = [gzipSync('\ufeff{"id": 2}\r\n\n'), Buffer.alloc(512), gzipSync('{"id": 3}')];
    write("mixed/b.jsonl.gz", Buffer.concat(members));
    write("mixed/c.jsonl", '\ufeff{"id": 4}\n');
    write("mixed/d.jsonl.zst", zst);
    const { status, batches } = await run({
      delimited_files: { store_paths: [uri("mixed/")], batch_size: 3 },
    });
    expect(status).toBe("status_succeeded");
    expect(batches).toEqual([
      [{ id: 0 }, { id: 1 }, { id: 2 }],
      [{ id: 3 }, { id: 4 }, { id: 5 }],
      [{ id: 6 }],
    ]);
  });

  it.each([
    [
      "cut-off.gz",
      () => gzipSync(lines(0, 1000)).subarray(0, 300),
      /cut-off.gz cannot be decompressed: unexpected end of file/,
    ],
    ["plain.gz", () => Buffer.from("{}\n"), /plain.gz cannot be decompressed: incorrect header check/],
    ["plain.zst", () => Buffer.from("{}\n"), /plain.zst cannot be decompressed/],
    ["cut-off.zst", () => zst.subarray(0, 20), /cut-off.zst cannot be decompressed/],
    ["bad-line.gz", () => gzipSync("{}\n[1]\n"), /bad-line.gz: line 2 /],
  ])("end the job and are named if they are damaged: %s", async (name, content, words) => {
    write(`damaged/${name}`, content());
    const { status, batches, reason } = await run({
      delimited_files: { store_paths: [uri(`damaged/${name}`)], batch_size: 1 },
    });
    expect([status, batches]).toEqual(["status_enqueue_failed", []]);
    expect(reason).toMatch(words);
  });

  it("are refused before the disk is full if they unpack to an absurd size", async () => {
    // 200 MB of blank lines in zstd's run-length blocks: 128 KiB in four bytes each.
    const block = Buffer.from([0x02, 0x00, 0x10, 0x0a]);
    const frame = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38]), ...Array<Buffer>(1600).fill(block)];
    write("bomb.zst", Buffer.concat([...frame, Buffer.from([0x03, 0x00, 0x10, 0x0a])]));
    const { status, reason } = await run({
      delimited_files: { store_paths: [uri("bomb.zst")], batch_size: 1 },
    });
    expect(status).toBe("status_enqueue_failed");
    expect(reason).toMatch(/bomb.zst unpacks to more than \d+ times its size/);
  });

  it("continue after a kill during enqueuing, with each line once", async () => {
    write("kill/1.jsonl.gz", gzipSync(lines(0, 200_000)));
    write("kill/2.jsonl", lines(200_000, 10));
    write("kill/3.jsonl.gz", gzipSync(lines(200_010, 100_000)));
    const { status, total, batches, wentOnAt } = await runThroughKill("segment-after-commit:2", {
      delimited_files: { store_paths: [uri("kill/")], batch_size: 1000 },
    });
    expect(status).toBe("status_succeeded");
    expect(wentOnAt).toBeGreaterThan(0);
    expect(wentOnAt).toBeLessThan(total);
    expect([total, batches.length]).toEqual([301, 301]);
    const ids = (batches as { id: number }[][]).map((batch) => batch.map((item) => item.id));
    const inOrder = ids.toSorted((one, other) => one[0]! - other[0]!).flat();
    expect(inOrder).toEqual(Array.from({ length: 300_010 }, (_, i) => i));
  });
});

describe("a dry run", () => {
  const dryRun = (body: unknown, headers = {}, value = "true") =>
    server.post(`/jobs?dryRun=${value}`, { workers: 1, ...(body as object) }, headers);
  beforeAll(() => {
    write("dry/a.png", "12345");
    write("dry/b.png", "678");
    write("dry/c.txt", "");
  });

  it.each(["true", "TRUE", "1", "t", "T"])(
    "with %s lists the selected input and makes no job",
    async (value) => {
      const before = await (await server.fetch("/jobs")).text();
      const selection = { store_paths: [uri("dry/")], includes: ["**.png"], batch_size: 2 };
      const paths = await dryRun({ file_path_lister: selection }, {}, value);
      expect(paths.status).toBe(200);
      const files = [uri("dry/a.png"), uri("dry/b.png")];
      expect(await paths.json()).toEqual({ files, file_count: 2, total_bytes: 8, batch_count: 1 });
      const lines = await dryRun({ delimited_files: selection }, {}, value);
      expect(await lines.json()).toEqual({ files, file_count: 2, total_bytes: 8, batch_count: null });
      expect(await (await server.fetch("/jobs")).text()).toBe(before);
    },
  );

  it("gives Cortex's text with Accept: text/plain", async () => {
    const answer = await dryRun(
      { file_path_lister: { store_paths: [uri("dry/")], batch_size: 2 } },
      { accept: "text/plain" },
    );
    expect(answer.headers.get("content-type")).toContain("text/plain");
    expect(await answer.text()).toBe(
      `${["a.png", "b.png", "c.txt"].map((name) => uri(`dry/${name}`)).join("\n")}\nvalidations passed\n`,
    );
  });

  it("counts the batches of inline items", async () => {
    const answer = await dryRun({ item_list: { items: [1, 2, 3], batch_size: 2 } });
    expect(await answer.json()).toEqual({ files: [], file_count: 0, total_bytes: 0, batch_count: 2 });
  });

  it("refuses the same input as a submission", async () => {
    const answer = await dryRun({ file_path_lister: { store_paths: [uri("none/")], batch_size: 1 } });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      400,
      "no_files_found",
    ]);
    expect((await dryRun({ item_list: { items: [], batch_size: 2 } })).status).toBe(400);
  });

  it.each(["false", "0", "", "yes"])("is a real submission with %s", async (value) => {
    const answer = await dryRun(
      { item_list: { items: [1], batch_size: 1 }, config: { log: join(server.dir, "x") } },
      {},
      value,
    );
    expect(await answer.json()).toHaveProperty("job_id");
  });
});

describe("a batch of lines", () => {
  const lines = (dir: string, batch_size: number) => ({
    delimited_files: { store_paths: [uri(`${dir}/`)], batch_size },
  });
  const writeMany = (dir: string, count: number, text: string) => {
    for (let n = 0; n < count; n++) write(`${dir}/${n}-${"x".repeat(200)}.jsonl`, text);
  };

  it("is refused with megabytes of white space", async () => {
    write("white/0.jsonl", `{${" ".repeat(700_000)}}\n`.repeat(3));
    const { status, reason } = await run(lines("white", 3));
    expect(status).toBe("status_enqueue_failed");
    expect(reason).toMatch(
      /0\.jsonl: with line 3 \(2 bytes\) its batch has lines of 2100\d+ bytes with their/,
    );
    expect((await run(lines("white", 2))).batches).toEqual([[{}, {}], [{}]]);
  });

  it("is refused with lines of too many files", async () => {
    writeMany(`many/${"y".repeat(250)}/${"z".repeat(250)}`, 2_700, "{}\n");
    const { status, reason } = await run(lines("many", 2_700));
    expect(status).toBe("status_enqueue_failed");
    expect(reason).toMatch(/its batch has lines of more than 2\d{3} files/);
  });

  it("knows nothing of files that have blank lines only, however many there are", async () => {
    writeMany("blank", 9_000, "\n");
    write("blank/z.jsonl", '{"a":1}');
    expect((await run(lines("blank", 1_000))).batches).toEqual([[{ a: 1 }]]);
  });
});
