/** Clients that pipeline requests: they delay no other client, and their requests end with them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../../src/contracts/limits/requests.ts";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { TestServer } from "../harness/server.ts";

const PREDICTOR = `
import os, time

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        while isinstance(payload, dict) and not os.path.exists(payload["await"]): time.sleep(0.02)
        return payload
`;

/** Connections whose first request waits. The heads of those behind it took 940 MiB; now all take 280 MiB. */
const WAITING = 1_000;

describe("pipelined requests", () => {
  const server = new TestServer();
  const sockets: Socket[] = [];
  let host: string;
  let idle: number;

  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `
- {name: held, predictor: {path: predictor.py}}
- {name: jobs, kind: BatchAPI, predictor: {path: predictor.py}}
`,
      "predictor.py": PREDICTOR,
    });
    host = new URL(server.baseUrl).host;
    idle = gatewaySockets();
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  afterAll(() => server.stop());

  const get = (path: string, header = "") => `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${header}\r\n`;
  const post = (path: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

  function send(text: string): { socket: Socket; answers: () => number; isClosed: () => boolean } {
    const socket = connect({ port: Number(new URL(server.baseUrl).port), host: "127.0.0.1" });
    sockets.push(socket);
    let received = "";
    let isClosed = false;
    socket.on("data", (data) => (received += String(data)));
    socket.on("error", () => {}).on("close", () => (isClosed = true));
    socket.write(text);
    return { socket, answers: () => received.split("HTTP/1.1 200").length - 1, isClosed: () => isClosed };
  }
  const closed = () => sockets.filter((socket) => socket.destroyed).length;
  const gatewaySockets = () => readdirSync(`/proc/${server.child("gateway")}/fd`).length;

  it("are answered up to the limit, and a connection that sends more is closed", async () => {
    const allowed = send(get("/-/livez").repeat(REQUESTS_OF_A_CONNECTION_MAX));
    await eventually("all answers", () => allowed.answers() === REQUESTS_OF_A_CONNECTION_MAX);
    expect(allowed.isClosed()).toBe(false);
    const greedy = send(get("/jobs").repeat(1_500));
    await eventually("the end of the connection", () => greedy.isClosed());
  });

  it("beyond the limit neither end a gateway nor reach a controller", async () => {
    const pid = server.child("gateway");
    for (let connection = 0; connection < 8; connection++) send(get("/jobs").repeat(1_500));
    // 12,000 requests of the controller took so long that a busy machine's gateway was silent, and replaced.
    expect((await fetch(`${server.baseUrl}/-/livez`)).status).toBe(200);
    await eventually("the end of the connections", () => closed() === 8);
    expect(server.child("gateway")).toBe(pid);
  });

  it("hold little once they are answered, however long they wait behind another, and whatever their heads", async () => {
    const pid = server.child("gateway");
    const headers = Array.from({ length: 195 }, (_, n) => `x-${n}-NUMBER: v${n}-NUMBER\r\n`).join("");
    const gate = join(server.dir, "gate");
    const held = post("/held", JSON.stringify({ await: gate }));
    resetPeak(pid);
    const before = peakMiB(pid);
    const clients = Array.from({ length: WAITING }, (_, client) => {
      const ahead = Array.from({ length: REQUESTS_OF_A_CONNECTION_MAX - 1 }, (_, n) =>
        get("/-/livez", headers.replaceAll("NUMBER", `${client}-${n}`)),
      );
      return send(held + ahead.join(""));
    });
    await eventually("all wait", async () => (await server.inFlight("held")) === WAITING);
    // Another request to the gateway is read after all that was sent before.
    expect((await fetch(`${server.baseUrl}/-/livez`)).status).toBe(200);
    expect(peakMiB(pid) - before).toBeLessThan(500);
    writeFileSync(gate, "");
    const allAnswered = () => clients.every(({ answers }) => answers() === REQUESTS_OF_A_CONNECTION_MAX);
    await eventually("all answers", allAnswered);
  });

  it("end with their connection, even a stream behind an answer that never came", async () => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    // The connections of the previous attack close at the controller too.
    await eventually("the end of what was before", () => gatewaySockets() < idle + 5);
    for (let client = 0; client < 20; client++) {
      const held = JSON.stringify({ await: join(server.dir, "never") });
      send(post("/held", held) + get("/-/audit?follow=1", `authorization: Bearer ${token}\r\n`));
    }
    await eventually("the streams", () => gatewaySockets() > idle + 30);
    for (const socket of sockets) socket.resetAndDestroy();
    await eventually("the end of the streams", () => gatewaySockets() < idle + 5);
  });
});
