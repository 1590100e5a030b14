/** Streams that nobody reads: what a gateway holds for them is bounded, and those that are read go on. */
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { TestServer } from "../harness/server.ts";

const PREDICTOR = `
class PythonPredictor:
    def __init__(self, config): self.calls = 0
    def predict(self, payload):
        if "calls" in payload: return self.calls
        self.calls += 1
        return iter(["x" * 1000] * payload["pieces"])
`;
const PIECES = 5_000;
const CONNECTIONS = 52;
const STREAMS_OF_EACH = 19;

describe("streams", () => {
  const server = new TestServer();
  const sockets: Socket[] = [];
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": "- {name: pieces, predictor: {path: predictor.py, timeout: 100s}}\n",
      "predictor.py": PREDICTOR,
    });
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  afterAll(() => server.stop());

  const post = (payload: unknown) => {
    const headers = { "content-type": "application/json" };
    return server.fetch("/pieces", { method: "POST", body: JSON.stringify(payload), headers });
  };
  function pipeline(count: number): Socket {
    const { host, port } = new URL(server.baseUrl);
    const body = JSON.stringify({ pieces: PIECES });
    const head = `POST /pieces HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const socket = connect({ port: Number(port), host: "127.0.0.1" });
    socket.on("error", () => {}).pause();
    socket.write((head + body).repeat(count));
    sockets.push(socket);
    return socket;
  }

  it("that nobody reads hold little of a gateway, and another one is read to its end", async () => {
    resetPeak(server.child("gateway"));
    for (let n = 0; n < CONNECTIONS; n++) pipeline(STREAMS_OF_EACH);
    await eventually("all have begun", async () => {
      const calls = Number(await (await post({ calls: true })).text());
      return calls === CONNECTIONS * STREAMS_OF_EACH;
    });
    const read = await (await post({ pieces: PIECES })).text();
    expect(read.length).toBe(PIECES * 1003);
    expect(peakMiB(server.child("gateway"))).toBeLessThan(600);
  });

  it("that wait for their turn are complete once it comes, each after the other", async () => {
    const socket = pipeline(STREAMS_OF_EACH);
    let bytes = 0;
    let tail = "";
    let ends = 0;
    socket.on("data", (data) => {
      bytes += data.length;
      const text = tail + data.toString("latin1");
      ends += text.split("\r\n0\r\n\r\n").length - 1;
      tail = text.slice(-6);
    });
    socket.resume();
    await eventually("all streams are complete", () => ends === STREAMS_OF_EACH);
    expect(bytes).toBeGreaterThan(STREAMS_OF_EACH * PIECES * 1003);
  });
});
