import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { peakMiB, resetPeak } from "../../harness/peak-memory.ts";
import { readStream } from "../../harness/read-stream.ts";
import { TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";

const TYPES = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, dict) and "file" in payload:
            return {"fields": {k: v for k, v in payload.items() if k != "file"},
                    "last": payload["file"].filename,
                    "files": [[f.filename, f.content_type, f.size, f.file.read().decode()] for f in payload.getlist("file")]}
        return [type(payload).__name__, payload.hex() if isinstance(payload, bytes) else payload]
`;

const ANSWERS = `
import sys
class Response:
    def __init__(self, body, status_code=200, headers=None):
        self.body, self.status_code, self.headers = body, status_code, headers or {}
class HTTPException(Exception):
    def __init__(self, status_code, detail): self.status_code, self.detail = status_code, detail
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, query_params, headers):
        kind = payload["kind"]
        if kind == "bytes": return b"\\x00\\xff"
        if kind == "response": return Response("<p>hi</p>", 202, {"Content-Type": "text/html", "X-Mine": "1", "Content-Length": "999"})
        if kind == "nocontent": return Response(None, 204)
        if kind == "badheader": return Response("x", 200, {"X-Bad": "a\\r\\nb: c"})
        if kind == "raise": raise HTTPException(422, {"field": "age"})
        if kind == "meta": return [query_params, headers.get("x-mine")]
        if kind == "lists":
            return [headers["X-MINE"], headers.getlist("X-Two"), headers.get("x-other", "none"),
                    query_params["q"], query_params.getlist("q"), query_params.multi_items()]
        if kind == "large": return {"text": "z" * payload["bytes"]}
        if kind == "pieces": return Response((b"%d," % n for n in range(5)), 200, {"Content-Type": "text/csv"})
    def post_predict(self, response, payload, query_params, headers):
        print("after", payload["kind"], type(response).__name__)
        if payload["kind"] == "meta": raise ValueError("nobody sees this")
`;

const TEXTS = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, list): return [self.answer(each["kind"]) for each in payload]
        return self.answer(payload["kind"])
    def answer(self, kind):
        if kind == "text": return "s\u00e9tosa"
        if kind == "long": return "z" * 3_000_000
        if kind == "value": return {"label": "setosa"}
        if kind == "bytes": return b"\\x00"
        if kind == "half": return "\\ud800"
        if kind == "pieces": return iter(["\u00e9\\n", "", " b\\r\\nc"])
        if kind == "lines": return iter(["a\\r\\nb\\n" * 500_000, "end"])
        if kind == "no text": return iter([1])
        if kind == "mixed": return iter(["a", 1])
`;

const ASYNC = `
import asyncio
class PythonPredictor:
    def __init__(self, config): pass
    async def predict(self, payload):
        if payload.get("raise"): raise ValueError("async trouble")
        if "meeting" in payload: await meet(payload["meeting"])
        return payload

waiting = []
async def meet(number):
    mine = asyncio.get_running_loop().create_future()
    waiting.append(mine)
    if len(waiting) == number:
        for one in waiting: one.set_result(None)
    await mine
`;

describe("real-time APIs", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `
- name: types
  predictor: {path: types_.py}
- name: answers
  predictor: {path: answers.py}
- name: texts
  predictor: {path: texts.py, response: text}
- name: text-batches
  predictor: {path: texts.py, response: text, server_side_batching: {max_batch_size: 4, batch_interval: 100ms}}
- name: async
  predictor: {path: async_.py}
- name: sink
  predictor: {path: sink.py}
- name: slow
  predictor: {path: slow.py}
`,
      "sink.py":
        "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return len(payload)\n",
      "slow.py":
        "import asyncio\nclass PythonPredictor:\n  def __init__(self, config): pass\n  async def predict(self, payload):\n    yield 1\n    await asyncio.sleep(17)\n    yield 2\n",
      "types_.py": TYPES,
      "answers.py": ANSWERS,
      "async_.py": ASYNC,
      "texts.py": TEXTS,
    });
  });
  afterAll(() => server.stop());

  const send = async (type: string | undefined, body: string | Uint8Array | FormData) => {
    const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
    const response = await server.fetch("/types", { method: "POST", body, headers });
    return [response.status, await response.json()];
  };

  it.each([
    ["application/json", "[1]", ["list", [1]]],
    ["application/vnd.x+json; charset=utf-8", '{"a":1}', ["dict", { a: 1 }]],
    ["text/plain; charset=utf-8", "é", ["str", "é"]],
    ["application/x-www-form-urlencoded", "a=1&a=2&b=", ["MultiDict", { a: "2", b: "" }]],
    ["image/png", "\u0001", ["bytes", "01"]],
    ["application/octet-stream", "", ["bytes", ""]],
  ])("parse a payload of %s", async (type, body, payload) => {
    expect(await send(type, body)).toEqual([200, payload]);
  });

  it("accept forms with files, as a browser sends them", async () => {
    const form = new FormData();
    form.set("name", "ß");
    form.append("file", new Blob(["first"], { type: "text/csv" }), "a b.csv");
    form.append("file", new Blob(["x".repeat(300_000)]), "ü.bin");
    expect(await send(undefined, form)).toEqual([
      200,
      {
        fields: { name: "ß" },
        last: "ü.bin",
        files: [
          ["a b.csv", "text/csv", 5, "first"],
          ["ü.bin", "application/octet-stream", 300_000, "x".repeat(300_000)],
        ],
      },
    ]);
  });

  it.each([
    ["text/plain", new Uint8Array([0xff])],
    ["multipart/form-data; boundary=b", "--b\r\nnothing"],
    ["multipart/form-data", "--b"],
  ])("refuse a body that is not valid %s, without calling predict()", async (type, body) => {
    expect(await send(type, body)).toEqual([400, expect.objectContaining({ code: "malformed_payload" })]);
  });

  const answer = (payload: Record<string, unknown>, query = "") =>
    server.post(`/answers${query}`, payload, { "x-mine": "here" });

  it("send bytes and response objects unchanged", async () => {
    const bytes = await answer({ kind: "bytes" });
    expect(bytes.headers.get("content-type")).toBe("application/octet-stream");
    expect([...new Uint8Array(await bytes.arrayBuffer())]).toEqual([0, 255]);
    const page = await answer({ kind: "response" });
    expect([page.status, page.headers.get("content-type"), page.headers.get("x-mine")]).toEqual([
      202,
      "text/html",
      "1",
    ]);
    expect(await page.text()).toBe("<p>hi</p>");
    expect((await answer({ kind: "nocontent" })).status).toBe(204);
    const pieces = await answer({ kind: "pieces" });
    expect([pieces.headers.get("content-type"), await pieces.text()]).toEqual(["text/csv", "0,1,2,3,4,"]);
  });

  it.each(["texts", "text-batches"])("send a str as text if the API says so: %s", async (api) => {
    const sent = await Promise.all(
      ["text", "value", "bytes", "text"].map(async (kind) => {
        const response = await server.post(`/${api}`, { kind });
        return [response.status, response.headers.get("content-type"), await response.text()];
      }),
    );
    const text = [200, "text/plain; charset=utf-8", "s\u00e9tosa"];
    expect(sent).toEqual([
      text,
      [200, "application/json", '{"label":"setosa"}'],
      [200, "application/octet-stream", "\0"],
      text,
    ]);
    const long = await server.post(`/${api}`, { kind: "long" });
    expect([long.headers.get("content-type"), (await long.text()).length]).toEqual([text[1], 3_000_000]);
    const half = await server.post(`/${api}`, { kind: "half" });
    expect([half.status, await half.json()]).toEqual([
      500,
      expect.objectContaining({ code: "prediction_not_serializable" }),
    ]);
    const payload = join(server.dir, "payload.json");
    writeFileSync(payload, '{"kind": "text"}');
    expect(server.cli(["predict", api, payload]).out).toBe("s\u00e9tosa\n");
  });

  it.each(["texts", "text-batches"])("stream text if the API says so: %s", async (api) => {
    const read = (kind: string, headers = {}) => readStream(`${server.baseUrl}/${api}`, { kind }, headers);
    expect(await read("pieces")).toMatchObject({
      type: "text/plain; charset=utf-8",
      text: "\u00e9\n b\r\nc",
      isWhole: true,
    });
    const events = { accept: "text/event-stream" };
    expect(await read("pieces", events)).toMatchObject({
      type: "text/event-stream",
      text: "data: \u00e9\ndata: \n\ndata: \n\ndata:  b\ndata: c\n\n",
    });
    const lines = await read("lines", events);
    expect(
      lines.isWhole && lines.text === `data: ${"a\ndata: b\ndata: ".repeat(500_000)}\n\ndata: end\n\n`,
    ).toBe(true);
    expect(await read("no text")).toMatchObject({ status: 500 });
    expect(await read("mixed")).toMatchObject({ status: 200, text: "a", isWhole: false });
    expect((await read("mixed", events)).text).toMatch(/^data: a\n\nevent: error\ndata: \{/);
    expect(server.cli(["logs", api]).out).toContain("a generator may give str only, not int; yield str");
  });

  it("do not let a predictor's header split the response", async () => {
    const response = await answer({ kind: "badheader" });
    expect([response.status, response.headers.get("b")]).toEqual([500, null]);
    expect(await response.json()).toMatchObject({ code: "prediction_failed" });
  });

  it("answer HTTP-like exceptions with their status and detail", async () => {
    const response = await answer({ kind: "raise" });
    expect([response.status, await response.json()]).toEqual([422, { detail: { field: "age" } }]);
  });

  it("give query and headers to a predictor that declares them", async () => {
    expect(await (await answer({ kind: "meta" }, "?q=%C3%A9&r=")).json()).toEqual([
      { q: "é", r: "" },
      "here",
    ]);
  });

  it("give every value of repeated headers and query parameters", async () => {
    const sent = request(`${server.baseUrl}/answers?q=1&r=&q=2`, {
      method: "POST",
      headers: { "content-type": "application/json", "X-Mine": "here", "X-Two": ["a", "b, c"] },
    });
    sent.end('{"kind": "lists"}');
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    expect(await json(answer)).toEqual([
      "here",
      ["a", "b, c"],
      "none",
      "2",
      ["1", "2"],
      [
        ["q", "1"],
        ["r", ""],
        ["q", "2"],
      ],
    ]);
  });

  it("call post_predict() after the answer, and never show its errors to the client", async () => {
    expect((await answer({ kind: "meta" })).status).toBe(200);
    await eventually("both are in the log", () => {
      const log = server.cli(["logs", "answers"]).out;
      return log.includes("after meta list") && log.includes("ValueError: nobody sees this");
    });
  });

  it("hold a body of 100 MB once in each process on the way in, and not at all on the way out", async () => {
    const body = Buffer.alloc(100 * 1024 * 1024 - 1, 7);
    const processes = [server.child("gateway"), ...server.workers()];
    /** The increase of each process's peak memory, the gateway first. */
    const grownMiB = async (action: () => Promise<void>) => {
      for (const pid of processes) resetPeak(pid);
      const before = processes.map(peakMiB);
      await action();
      return processes.map((pid, at) => peakMiB(pid) - before[at]!);
    };
    const upload = async () => {
      const headers = { "content-type": "application/octet-stream" };
      const response = await server.fetch("/sink", { method: "POST", body, headers });
      expect(await response.text()).toBe(String(body.length));
    };
    const [gateway, ...workers] = await grownMiB(upload);
    expect(gateway).toBeLessThan(100 + 60);
    expect(Math.max(...workers)).toBeLessThan(100 + 30);
    const download = async () => {
      const response = await answer({ kind: "large", bytes: 200_000_000 });
      expect((await response.arrayBuffer()).byteLength).toBe(200_000_000 + '{"text":""}'.length);
    };
    expect((await grownMiB(download))[0]).toBeLessThan(120);
  });

  it("limit the large bodies of each client from their announcement on", async () => {
    const bytes = 95_000_000;
    const sockets: Socket[] = [];
    const first = (head: string, from = "127.0.0.1") =>
      new Promise<string>((resolve, reject) => {
        const port = Number(new URL(server.baseUrl).port);
        const socket = connect({ port, host: "127.0.0.1", localAddress: from });
        sockets.push(socket);
        socket.on("error", reject).once("data", (data) => resolve(String(data)));
        socket.write(
          `POST /sink HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n${head}\r\n\r\n`,
        );
      });
    // It sends "100 Continue" to accepted requests.
    const announce = (from?: string) => first(`expect: 100-continue\r\ncontent-length: ${bytes}`, from);
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await announce());
    for (let i = 0; i < 2; i++) answers.push(await announce("127.0.0.2"));
    expect(answers.map((text) => text.slice(9, 12))).toEqual(["100", "100", "100", "503", "100", "503"]);
    expect(answers[3]).toMatch(/retry-after: 1\r\n[\s\S]*queue_full/);
    // A body of unknown length is read as far as the budget allows; small ones have a budget of their own.
    const refused = first("transfer-encoding: chunked");
    const [chunked] = sockets.slice(-1);
    chunked!.on("error", () => {});
    const chunk = Buffer.from(`100000\r\n${"x".repeat(0x100000)}\r\n`);
    for (let i = 0; i < 95 && chunked!.writable; i++)
      if (!chunked!.write(chunk))
        await Promise.race([refused, new Promise((resolve) => chunked!.once("drain", resolve))]);
    expect((await refused).slice(9, 12)).toBe("503");
    expect((await server.post("/async", { id: 1 })).status).toBe(200);
    for (const socket of sockets) socket.on("error", () => {}).destroy();
    await eventually("what clients that left had announced is free", async () => {
      const [answer] = await Promise.all([announce()]);
      sockets
        .at(-1)!
        .on("error", () => {})
        .destroy();
      return answer.includes("100 Continue");
    });
    // Exactly once, or the budget would allow more bodies, or fewer.
    await eventually("there is room for three of one and one of another, and no more", async () => {
      const again = [];
      for (let i = 0; i < 4; i++) again.push((await announce()).slice(9, 12));
      for (let i = 0; i < 2; i++) again.push((await announce("127.0.0.2")).slice(9, 12));
      for (const socket of sockets) socket.on("error", () => {}).destroy();
      return again.join() === "100,100,100,503,100,503";
    });
  }, 60_000);

  it("do not delay other requests while large bodies pass", async () => {
    const body = Buffer.alloc(100_000_000, 7);
    const upload = async () =>
      (
        await server.fetch("/sink", {
          method: "POST",
          body,
          headers: { "content-type": "application/octet-stream" },
        })
      ).text();
    const load = new SteadyLoad(`${server.baseUrl}/async`, 2, {});
    await eventually("answers come", () => load.answers.length > 100);
    const before = load.answers.length;
    expect(await Promise.all([upload(), upload(), upload()])).toEqual(Array(3).fill(String(body.length)));
    const during = load.answers.slice(before);
    await load.stop();
    // Two clients, one request each at a time: had they waited for the bodies, there would be two answers or four.
    expect(during.length).toBeGreaterThan(10);
    expect(new Set(during.map(({ status }) => status))).toEqual(new Set([200]));
  }, 60_000);

  it("keep silent streams alive", async () => {
    const [events, lines] = await Promise.all(
      [{ accept: "text/event-stream" }, { accept: "*/*" }].map((headers) =>
        readStream(`${server.baseUrl}/slow`, {}, headers),
      ),
    );
    expect(events!.text).toBe("data: 1\n\n: \n\ndata: 2\n\n");
    expect(lines!.text).toBe("1\n\n2\n");
  }, 40_000);

  it("run async predictors concurrently", async () => {
    // None of them is answered before all 50 have begun.
    const payloads = Array.from({ length: 50 }, (_, id) => ({ id, meeting: 50 }));
    const answers = await Promise.all(
      payloads.map((payload) => server.post("/async", payload).then((r) => r.json())),
    );
    expect(answers).toEqual(payloads);
    expect((await server.post("/async", { raise: true })).status).toBe(500);
  });
});

describe("answers that wait behind an earlier one", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": "- name: bytes\n  predictor: {path: p.py, threads_per_process: 16}\n",
      "p.py": `import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        # The first one of a connection is the last to be ready.
        time.sleep(0.5 if payload == 0 else 0)
        return b"%03d" % payload * 1000
`,
    });
  });
  afterAll(() => server.stop());

  it("are unchanged, whatever the worker sent meanwhile", async () => {
    const requests = Array.from({ length: 15 }, (_, n) => n);
    const socket = connect(Number(new URL(server.baseUrl).port), "127.0.0.1");
    let received = "";
    socket.on("data", (piece) => (received += piece.toString("latin1")));
    const head = "POST /bytes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    socket.write(requests.map((n) => `${head}Content-Length: ${String(n).length}\r\n\r\n${n}`).join(""));
    const bodies = () =>
      received
        .split("\r\n\r\n")
        .slice(1)
        .map((part) => part.slice(0, 3000));
    await eventually("all have come", () => bodies().length === 15 && bodies()[14]!.length === 3000);
    socket.destroy();
    expect(bodies()).toEqual(requests.map((n) => String(n).padStart(3, "0").repeat(1000)));
  });
});
