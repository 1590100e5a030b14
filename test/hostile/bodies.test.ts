/**
 * Attacks with request bodies: announced and not sent, from unknown senders, slow, and in forms that are slow to parse.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { RawRequests } from "../harness/raw-requests.ts";
import { TestServer } from "../harness/server.ts";

const MB = 1_000_000;
const OCTETS = "application/octet-stream";
const HELD_MIB_MAX = 700;

const SINK = `
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, dict) and "await" in payload:
            while not os.path.exists(payload["await"]): time.sleep(0.02)
        return len(payload)
`;

describe("hostile bodies", () => {
  const server = new TestServer();
  let requests: RawRequests;
  const keys: Record<"greedy" | "other" | "third" | "submitter" | "neighbour", string> = {} as never;
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const create = (scope: string) =>
    (JSON.parse(server.cli(["keys", "create", "-o", "json", "--scope", scope]).out) as { key: string }).key;

  beforeAll(async () => {
    const credentials = join(server.dir, "credentials");
    writeFileSync(
      credentials,
      "[one]\naws_access_key_id = AKIDKNOWN\naws_secret_access_key = secret\nquern_scope = predict submit\n",
    );
    await server.start({}, ["--sigv4-credentials", credentials]);
    server.deploy({
      "quern.yaml": `
- name: sink
  predictor: {path: sink.py}
- name: second
  predictor: {path: sink.py}
- name: narrow
  predictor: {path: sink.py}
  autoscaling: {max_replica_concurrency: 1, max_replicas: 1}
- name: jobs
  kind: BatchAPI
  predictor: {path: sink.py}
`,
      "sink.py": SINK,
    });
    for (const [name, scope] of [
      ["greedy", "predict"],
      ["other", "predict"],
      ["third", "predict"],
      ["submitter", "submit"],
      ["neighbour", "submit"],
    ] as const)
      keys[name] = create(scope);
    requests = new RawRequests(server.baseUrl);
  }, 120_000);
  afterEach(() => requests.close());
  afterAll(() => server.stop());

  /** Announces a body and sends it only if it is accepted; resolves to the response. */
  const announce = (api: string, key: string, bytes: number) =>
    requests
      .send(`POST /${api}`, {
        ...bearer(key),
        ...{ "content-type": OCTETS, "content-length": bytes, expect: "100-continue" },
      })
      .firstStatus();
  const predict = (api: string, key: string, body: Uint8Array | string, type = OCTETS) =>
    server.fetch(`/${api}`, { method: "POST", body, headers: { ...bearer(key), "content-type": type } });

  it("take at most two thirds of the budget for one key, and the rest is for others", async () => {
    const answers = [];
    for (let i = 0; i < 30; i++) answers.push(await announce("sink", keys.greedy, 50 * MB));
    expect(answers.filter((status) => status === "100").length).toBe(6);
    expect(new Set(answers)).toEqual(new Set(["100", "503"]));
    expect([
      await announce("sink", keys.other, 100 * MB),
      await announce("sink", keys.other, 50 * MB),
    ]).toEqual(["100", "503"]);
    expect(await announce("second", keys.neighbour, 100 * MB)).toBe("403");
    // Small ones of the greedy key too, and a large one to another API.
    expect((await predict("sink", keys.greedy, "abc")).status).toBe(200);
    expect((await predict("second", keys.third, new Uint8Array(50 * MB))).status).toBe(200);
  });

  it("take bounded memory when all are sent at once", async () => {
    const processes = [server.child("gateway"), server.child("controller")];
    for (const pid of processes) resetPeak(pid);
    const body = new Uint8Array(50 * MB);
    const sent = Array.from({ length: 30 }, async () => {
      const answer = await predict("sink", keys.greedy, body).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => {});
      return answer?.status ?? 0;
    });
    const others: number[] = [];
    let isOver = false as boolean;
    void Promise.all(sent).then(() => {
      isOver = true;
    });
    while (!isOver) others.push((await predict("second", keys.other, "small")).status);
    expect(new Set(others)).toEqual(new Set([200]));
    expect(new Set(await Promise.all(sent))).toContain(200);
    for (const pid of processes) expect(peakMiB(pid)).toBeLessThan(HELD_MIB_MAX);
  }, 120_000);

  /** The head of a request that is signed with an unknown secret. */
  const forged = (accessKey: string, more: Record<string, string> = {}) => {
    const date = `${new Date().toISOString().replace(/[-:]|\.\d+/g, "")}`;
    return {
      "content-type": OCTETS,
      "x-amz-date": date,
      ...more,
      authorization: `AWS4-HMAC-SHA256 Credential=${accessKey}/${date.slice(0, 8)}/eu-west-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=${"0".repeat(64)}`,
    };
  };

  it.each(["sink", "jobs", "-/keys"])(
    "are not collected for a signature that the head shows to be invalid, at /%s",
    async (path) => {
      const hash = { "x-amz-content-sha256": "0".repeat(64) };
      const unsigned = { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" };
      const old = { "x-amz-date": "20200101T000000Z" };
      const heads = [
        forged("AKIDOTHER"),
        forged("AKIDKNOWN", hash),
        forged("AKIDKNOWN", unsigned),
        forged("AKIDKNOWN", old),
        { ...forged("AKIDKNOWN"), authorization: "AWS4-HMAC-SHA256 Credential=AKIDKNOWN" },
      ];
      for (const head of heads) {
        const more = { "content-length": 10 * MB, expect: "100-continue" };
        expect(await requests.send(`POST /${path}`, { ...head, ...more }).firstStatus()).toBe("401");
      }
    },
  );

  it("are collected if only the body can show that a signature is wrong, up to two thirds of the budget for one address", async () => {
    const head = { ...forged("AKIDKNOWN"), "content-length": 50 * MB, expect: "100-continue" };
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push(await requests.send("POST /sink", head).firstStatus());
    expect(answers.filter((status) => status === "100").length).toBe(6);
    const small = { ...head, "content-length": 10 * MB };
    const submissions = [];
    for (let i = 0; i < 20; i++) submissions.push(await requests.send("POST /jobs", small).firstStatus());
    expect(submissions).toContain("503");
    expect(await announce("second", keys.other, 100 * MB)).toBe("100");
  });

  it("leave an eighth of the budget to other APIs, whatever the query", async () => {
    const head = { ...forged("AKIDKNOWN"), "content-length": 10 * MB, expect: "100-continue" };
    const held = [];
    for (let i = 0; i < 60; i++)
      held.push(await requests.send(`POST /jobs?i=${i}`, head, `127.0.0.${2 + (i % 20)}`).firstStatus());
    expect(new Set(held)).toEqual(new Set(["100", "503"]));
    expect(await announce("second", keys.other, 40 * MB)).toBe("100");
  });

  it("are read to the end after a refusal, and the connection stays open", async () => {
    const head = { ...forged("AKIDKNOWN"), "transfer-encoding": "chunked" };
    const ask = requests.send("POST /jobs", head);
    const part = `f4240\r\n${"x".repeat(MB)}\r\n`;
    ask.socket.write(part.repeat(12));
    expect(await ask.firstStatus()).toBe("413");
    ask.socket.write(part.repeat(12));
    ask.socket.write("0\r\n\r\nGET /-/livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await eventually("the next request is answered", () => ask.text.includes("HTTP/1.1 200 "));
  });

  it("reserve nothing if there is no body", async () => {
    // No body was announced, so none is reserved: each of these once took ten megabytes.
    const answers = Array.from({ length: 60 }, () =>
      requests.send("GET /jobs", { ...forged("AKIDKNOWN"), "x-amz-content-sha256": "" }).firstStatus(),
    );
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["401"]));
    expect(
      await requests.send("GET /sink", { ...bearer(keys.greedy), "content-length": 90 * MB }).firstStatus(),
    ).toBe("200");
  });

  it("leave a third of the budget for submissions to other keys", async () => {
    const head = { "content-type": "application/json", "content-length": 10 * MB };
    const held = Array.from({ length: 30 }, () =>
      requests.send("POST /jobs", { ...bearer(keys.submitter), ...head }),
    );
    const refused = () => held.filter(({ status }) => status === "503").length;
    await eventually(
      "those that have no room are refused",
      () => refused() === 22,
      30_000,
      () => String(refused()),
    );
    expect(held.find(({ status }) => status === "503")!.text).toMatch(/retry-after: 1\r\n[\s\S]*queue_full/i);
    const items = [..."x".repeat(40)].map(() => "y".repeat(200_000));
    const answer = await server.post(
      "/jobs",
      { workers: 1, item_list: { items, batch_size: 1 } },
      bearer(keys.neighbour),
    );
    expect(answer.status).toBe(200);
    expect((await server.post("/jobs", {}, bearer(keys.submitter))).status).toBe(400);
  });

  it("are not requested if the request is refused anyway", async () => {
    const marker = join(server.dir, "go-on");
    const waiting = predict("narrow", keys.other, JSON.stringify({ await: marker }), "application/json");
    await eventually(
      "its only place is taken",
      async () => (await announce("narrow", keys.greedy, MB)) === "503",
    );
    writeFileSync(marker, "");
    expect((await waiting).status).toBe(200);
    const of = (path: string, more: Record<string, string | number>) =>
      requests.send(`POST ${path}`, { "content-length": 9 * MB, ...more }).firstStatus();
    expect(await of("/nothing", bearer(keys.greedy))).toBe("404");
    expect(await of("/jobs", bearer("unknown"))).toBe("401");
    expect(await of("/jobs", { ...bearer(keys.submitter), "idempotency-key": "x".repeat(1_000) })).toBe(
      "400",
    );
    expect(await of("/jobs", { ...bearer(keys.submitter), "content-length": 20 * MB })).toBe("413");
  });

  it("are never read as the next request if they were not requested: the connection is closed", async () => {
    const of = (path: string, more: Record<string, string | number>) =>
      requests.send(`POST ${path}`, { "content-length": 9 * MB, expect: "100-continue", ...more });
    const page = { origin: "https://page.example" };
    const all = [
      of("/nothing", bearer(keys.greedy)),
      of("/jobs", bearer("unknown")),
      of("/jobs", { ...bearer(keys.submitter), "content-length": 20 * MB }),
      of("/jobs", { ...bearer(keys.submitter), ...page }),
      of("/jobs", forged("AKIDOTHER")),
      of("/jobs", { ...forged("AKIDKNOWN"), "content-length": 20 * MB }),
    ];
    const ended = all.map(({ socket }) => new Promise((resolve) => socket.once("close", resolve)));
    await Promise.all(ended);
    expect(all.map(({ status }) => status)).toEqual(["404", "401", "413", "403", "401", "413"]);
    for (const { text } of all) expect(text).toMatch(/^connection: close\r$/im);
  });

  it("release their budget if they stall", async () => {
    const head = { "content-type": OCTETS, "content-length": 50 * MB };
    const slow = requests.send("POST /sink", { ...bearer(keys.greedy), ...head });
    slow.socket.write("x".repeat(100_000));
    const chunked = requests.send("POST /sink", {
      ...{ ...bearer(keys.greedy), "content-type": OCTETS, "transfer-encoding": "chunked" },
    });
    chunked.socket.write(`30d40\r\n${"x".repeat(200_000)}\r\n`);
    const job = requests.send("POST /jobs", {
      ...{ ...bearer(keys.submitter), "content-type": "application/json", "content-length": 10 * MB },
    });
    const all = [slow, chunked, job];
    await eventually(
      "all have been told",
      () => all.every(({ status }) => status === "408"),
      60_000,
      () => all.map(({ text }) => text).join(),
    );
    for (const { text } of all) expect(text).toContain('"code":"body_too_slow"');
  }, 70_000);

  it.each([
    [
      "multipart headers of semicolons",
      "multipart/form-data; boundary=b",
      () => `--b\r\nContent-Disposition: form-data; name="a"${";".repeat(16_000)}\r\n\r\n1\r\n`.repeat(600),
    ],
    ["a content type of semicolons", `text/plain${";".repeat(8_000)}`, () => "a"],
    ["punycode", "text/plain; charset=punycode", () => `${"a".repeat(300_000)}-${"b".repeat(300_000)}`],
    ["idna", "text/plain; charset=idna", () => "a".repeat(500_000)],
    ["a form of many fields", "application/x-www-form-urlencoded", () => "a&".repeat(10_000_000)],
    ["an integer of a million digits", "application/json", () => "1".repeat(1_000_000)],
    ["deep JSON", "application/json", () => "[".repeat(1_000_000)],
  ])("made of %s get 400 within moments", async (_what, type, body) => {
    const started = performance.now();
    const answer = await predict("sink", keys.greedy, body(), type);
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      400,
      type === "application/json" ? "malformed_json" : "malformed_payload",
    ]);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect((await predict("sink", keys.other, "abc")).status).toBe(200);
  });
});
