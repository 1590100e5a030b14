import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { readStream } from "../../harness/read-stream.ts";
import { TestServer } from "../../harness/server.ts";

/** The same for both kinds: `%s` is `def` or `async def`, with its own pause. */
const STREAMING = (isAsync: boolean) => `
import asyncio, os, time
class PythonPredictor:
    def __init__(self, config): pass
    ${isAsync ? "async " : ""}def predict(self, payload):
        made = 0
        try:
            for n in range(payload["times"]):
                if payload.get("raise_at") == n: raise ValueError("no good at %d" % n)
                if payload.get("exit_at") == n: os._exit(3)
                if payload.get("sleep"): ${isAsync ? "await asyncio.sleep" : "time.sleep"}(payload["sleep"])
                made += 1
                yield {"n": n, "text": "é\\n" + "x" * payload.get("bytes", 0)}
        finally:
            if "note" in payload:
                with open(payload["note"], "w") as note: note.write(str(made))
`;

describe.each(["generator", "async generator", "generator in threads"])("a %s", (kind) => {
  const server = new TestServer();
  const isAsync = kind === "async generator";
  const threads = kind === "generator in threads" ? ", threads_per_process: 4" : "";
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `- name: stream\n  predictor: {path: p.py, timeout: 3s${threads}}\n`,
      "p.py": STREAMING(isAsync),
    });
  });
  afterAll(() => server.stop());

  const read = (payload: unknown, headers = {}) => readStream(`${server.baseUrl}/stream`, payload, headers);
  const note = (name: string) => join(server.dir, name);

  it("streams lines of JSON as they are produced", async () => {
    const { status, type, text, piecesMs, isWhole } = await read({ times: 4, sleep: 0.5 });
    expect([status, type, isWhole]).toEqual([200, "application/x-ndjson", true]);
    const lines = text.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n)).toEqual([0, 1, 2, 3]);
    expect(piecesMs[0]).toBeLessThan(piecesMs.at(-1)! - 250);
  });

  it("streams server-sent events to clients that accept them", async () => {
    const { type, text } = await read({ times: 2 }, { accept: "text/event-stream" });
    expect(type).toBe("text/event-stream");
    expect(text).toBe('data: {"n":0,"text":"é\\n"}\n\ndata: {"n":1,"text":"é\\n"}\n\n');
  });

  it("reports an exception before the first piece by a status, and a later one in the cut stream", async () => {
    const early = await read({ times: 3, raise_at: 0 });
    expect([early.status, JSON.parse(early.text)]).toEqual([
      500,
      expect.objectContaining({ code: "prediction_failed" }),
    ]);
    const late = await read({ times: 3, raise_at: 2 });
    expect([late.status, late.isWhole]).toEqual([200, false]);
    expect(JSON.parse(late.text.trimEnd().split("\n").at(-1)!)).toMatchObject({
      error: { code: "prediction_failed" },
    });
    const events = await read({ times: 3, raise_at: 2 }, { accept: "text/event-stream" });
    expect(events.text).toContain('event: error\ndata: {"type":"urn:quern:error:prediction_failed"');
  });

  it("cuts the stream of a worker that died, and reports it", async () => {
    const { text, isWhole } = await read({ times: 3, exit_at: 2, sleep: 0.05 });
    expect(isWhole).toBe(false);
    expect(text).toContain('"code":"worker_died"');
    await eventually("another has taken its place", async () => (await read({ times: 1 })).status === 200);
  });

  it("supports empty streams and pieces of megabytes", async () => {
    expect(await read({ times: 0 })).toMatchObject({ status: 200, text: "", isWhole: true });
    const { text, isWhole } = await read({ times: 5, bytes: 3_000_000 });
    expect(isWhole).toBe(true);
    expect(
      text
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { n: number }).n),
    ).toEqual([0, 1, 2, 3, 4]);
  });

  it("pauses the producer for a slow reader without delaying others, and ends it after the timeout", async () => {
    const socket = await openStream(server.baseUrl, { times: 1_000_000, bytes: 1000, note: note("slow") });
    await eventually("others are answered at once", async () => {
      const started = performance.now();
      await read({ times: 2 });
      return performance.now() - started < 500;
    });
    await eventually("the generator was closed", () => existsSync(note("slow")), 10_000);
    // As much as buffers on the way hold, not a gigabyte.
    expect(Number(readFileSync(note("slow"), "utf8"))).toBeLessThan(20_000);
    socket.destroy();
  });

  it("closes the generator of a client that leaves", async () => {
    const sent = request(`${server.baseUrl}/stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    sent.on("error", () => {});
    sent.end(JSON.stringify({ times: 1_000_000, sleep: 0.01, note: note("left") }));
    await new Promise<void>((resolve) =>
      sent.on("response", (answer) => answer.once("data", () => resolve())),
    );
    sent.destroy();
    await eventually("the generator was closed", () => existsSync(note("left")));
    expect(Number(readFileSync(note("left"), "utf8"))).toBeLessThan(500);
  });

  it("ends a producer that stalls beyond predictor.timeout", async () => {
    const { text, isWhole } = await read({ times: 2, sleep: 5 });
    expect([JSON.parse(text), isWhole]).toEqual([
      expect.objectContaining({ code: "prediction_timeout" }),
      true,
    ]);
    await eventually("it serves again", async () => (await read({ times: 1 })).status === 200, 20_000);
  });
});

/** A client that never reads. */
function openStream(baseUrl: string, payload: unknown): Promise<ReturnType<typeof connect>> {
  const { port } = new URL(baseUrl);
  const body = JSON.stringify(payload);
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => {
      socket.pause();
      socket.write(
        `POST /stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      resolve(socket);
    });
    socket.on("error", () => {});
  });
}
