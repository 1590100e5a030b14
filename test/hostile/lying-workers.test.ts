/** Workers that send frames of their own: what they say harms their own API only, never the others. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { TestServer } from "../harness/server.ts";

/** Finds its worker on the stack, and writes to the connections of its callers. */
const LIAR = `
import json, struct, sys, time

def worker():
    frame = sys._getframe()
    while type(frame.f_locals.get("self")).__name__ != "Worker":
        frame = frame.f_back
    return frame.f_locals["self"]

def frame(kind, number, body, flags=0):
    return struct.pack("<IBBHI", len(body), kind, flags, 0, number) + body

def send(connection, data):
    connection.sock.setblocking(True)
    connection.sock.sendall(data)

class PythonPredictor:
    def __init__(self, config):
        if "ready" in config:
            controller = [one for one in worker()._sockets if one.role == "controller"][0]
            send(controller, frame(65, 0, eval(config["ready"]).encode()))
            time.sleep(3600)
    def predict(self, payload):
        me = worker()
        number, delivery = struct.unpack_from("<II", me._note._map, 8)
        gateway = [one for one in me._sockets if one.number == number][0]
        head = b'{"headers":[' + b",".join([b'["a","b"]'] * payload["headers"]) + b"]}" if payload["headers"] else b""
        self.long(gateway, delivery, struct.pack("<II", 1, len(head)) + head + b"7" * payload["bytes"])
        time.sleep(5)
    def long(self, connection, number, body):
        piece, credit, data = 256 * 1024, 1024 * 1024, b""
        connection.sock.setblocking(True)
        for at in range(0, len(body), piece):
            while credit < piece:
                data += connection.sock.recv(65536)
                while len(data) >= 12 and len(data) >= 12 + struct.unpack_from("<I", data)[0]:
                    length, kind = struct.unpack_from("<IB", data)
                    if kind == 8:
                        credit += struct.unpack_from("<I", data, 12)[0]
                    data = data[12 + length:]
            credit -= piece
            more = at + piece < len(body)
            connection.sock.sendall(frame(67, number, body[at:at + piece], 1 if more else 0))
`;
const HONEST =
  "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return payload\n";
const yaml = (liar: string) =>
  `- {name: honest, predictor: {path: honest.py}}\n- {name: liar, predictor: {path: liar.py, config: ${liar}}}\n`;
const files = (liar: string) => ({ "quern.yaml": yaml(liar), "honest.py": HONEST, "liar.py": LIAR });
const SLOW_MS = 2_000;

const server = new TestServer();
beforeAll(async () => {
  await server.start();
});
afterAll(() => server.stop());

/** The longest time that the other API took for a prediction while `attack` went on. */
async function slowestMeanwhile(attack: Promise<unknown>): Promise<number> {
  let isOver = false;
  const ended = attack.finally(() => {
    isOver = true;
  });
  let slowest = 0;
  while (!isOver) {
    const sentMs = performance.now();
    const response = await server.post("/honest", { a: 1 });
    expect([response.status, await response.json()]).toEqual([200, { a: 1 }]);
    slowest = Math.max(slowest, performance.now() - sentMs);
  }
  await ended;
  return slowest;
}

describe("a replica that sends a result", () => {
  beforeAll(() => server.deploy(files("{}")));

  it.each([
    ["whose head has 10 million headers", { headers: 10_000_000, bytes: 1 }],
    ["of 400 MB, which no worker sends in one piece", { headers: 0, bytes: 400_000_000 }],
    ["with a head of 400 KB", { headers: 40_000, bytes: 1 }],
  ])("%s fails its own request only", async (_, payload) => {
    const gateway = server.child("gateway");
    const attack = server.post("/liar", payload).then(async (response) => {
      expect([500, 502]).toContain(response.status);
      await response.text();
    });
    expect(await slowestMeanwhile(attack)).toBeLessThan(SLOW_MS);
    expect(server.child("gateway")).toBe(gateway);
  });
});

describe("a replica whose READY", () => {
  it.each([
    ["is nested 100,000 deep", `'{"wants":' + '[' * 100000 + ']' * 100000 + ',"is_async":false}'`],
    ["wants what no request has", `'{"wants":["w"],"is_async":false}'`],
    ["wants no list", `'{"wants":{"length":5},"is_async":false}'`],
    ["is async in a way of its own", `'{"wants":[],"is_async":[[]]}'`],
  ])("%s is not believed, and other APIs change as before", async (_, ready) => {
    const config = JSON.stringify({ ready });
    server.stderr = "";
    server.deploy(files(config), { wait: false });
    await eventually("it is killed", () => server.stderr.includes("replica_not_set_up"));
    expect(server.cli(["keys", "create", "--scope", "predict", "--api", "honest"])).toMatchObject({
      code: 0,
    });
    const [id] = /k-\w+/.exec(server.cli(["keys", "list"]).out)!;
    expect(server.cli(["keys", "revoke", id])).toMatchObject({ code: 0 });
  });
});
