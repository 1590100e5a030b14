/** TLS connections that never become requests: they hold bounded memory, and finished handshakes are not affected. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { HANDSHAKES_MAX } from "../../src/contracts/limits/requests.ts";
import { makeCertificate } from "../harness/certificates.ts";
import { eventually } from "../harness/eventually.ts";
import { TestServer } from "../harness/server.ts";

describe("unfinished TLS handshakes", () => {
  const server = new TestServer();
  const sockets: Socket[] = [];
  let ca: Buffer;

  beforeAll(async () => {
    const { cert, key } = makeCertificate(server.dir);
    ca = readFileSync(cert);
    await server.start({}, ["--tls-cert", cert, "--tls-key", key]);
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  afterAll(() => server.stop());

  function begin(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: Number(new URL(server.baseUrl).port), host: "127.0.0.1" });
      sockets.push(socket);
      socket.on("error", reject).once("connect", () => resolve(socket));
      socket.resume();
    });
  }

  /** The status, and the client's port: the same where the connection is. */
  function livez(agent: Agent): Promise<[number | undefined, number | undefined]> {
    return new Promise((resolve, reject) => {
      const sent = request(`${server.baseUrl}/-/livez`, { agent, ca }, (answer) => {
        const { localPort } = answer.socket;
        answer.resume().on("end", () => resolve([answer.statusCode, localPort]));
      });
      sent.on("error", reject).end();
    });
  }

  it("are closed, the oldest first, and established connections are not", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const [, port] = await livez(agent);
    for (let begun = 0; begun < HANDSHAKES_MAX + 20; begun++) await begin();
    const closed = () => sockets.filter((socket) => socket.closed).length;
    await eventually("the oldest are closed", () => closed() >= 20);
    expect(sockets.slice(0, 20).every((socket) => socket.closed)).toBe(true);
    expect(closed()).toBe(20);
    expect(await livez(agent)).toEqual([200, port]);
    expect((await livez(new Agent()))[0]).toBe(200);
    agent.destroy();
  });

  it("end after the timeout for headers", async () => {
    const socket = await begin();
    await eventually("it is closed", () => socket.closed, 40_000);
  });
});
