/** Many requests without a key that a gateway gets in one turn of its event loop. */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  REQUESTS_OF_A_CONNECTION_MAX,
  STRANGERS_OF_A_TURN_MAX,
} from "../../src/contracts/limits/requests.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const CONNECTIONS = 150;
const AHEAD = REQUESTS_OF_A_CONNECTION_MAX - 1;

describe("a burst of requests without a key", () => {
  const server = new TestServer();
  const clients: Client[] = [];
  let key: string;

  interface Client {
    socket: Socket;
    statuses: () => string[];
    isClosed: () => boolean;
  }

  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `
- {name: echo, predictor: {path: predictor.py}}
- {name: open, predictor: {path: predictor.py}, networking: {auth: none}}
`,
      "predictor.py": ECHO,
    });
    key = ((await (await server.post("/-/keys", { scope: "predict" })).json()) as { key: string }).key;
  });
  afterEach(() => {
    for (const { socket } of clients.splice(0)) socket.destroy();
  });
  afterAll(() => server.stop());

  async function open(): Promise<Client> {
    const { port } = new URL(server.baseUrl);
    const socket = connect({ port: Number(port), host: "127.0.0.1" });
    let received = "";
    let isClosed = false;
    socket.on("data", (data) => (received += String(data)));
    socket.on("error", () => {}).on("close", () => (isClosed = true));
    const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status!);
    const client = { socket, statuses, isClosed: () => isClosed };
    clients.push(client);
    // The gateway has the connection, so all that is sent later arrives in one turn.
    socket.write(get("/-/livez"));
    await eventually("the connection", () => statuses().length === 1);
    received = "";
    return client;
  }
  const openMany = (count: number) => Promise.all(Array.from({ length: count }, open));
  const get = (path: string, header = "") => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${header}\r\n`;
  const predict = (path: string, header = "") =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n${header}\r\n{}`;

  /** All that is sent meanwhile reaches the gateway in one turn of its event loop. */
  async function inOneTurn(send: () => void): Promise<void> {
    const gateway = server.child("gateway");
    process.kill(gateway, "SIGSTOP");
    try {
      await eventually("it stands still", () => /\) T /.test(readFileSync(`/proc/${gateway}/stat`, "utf8")));
      send();
      await eventually("all is sent", () => clients.every(({ socket }) => socket.writableLength === 0));
    } finally {
      process.kill(gateway, "SIGCONT");
    }
  }
  const closed = (these: Client[]) => these.filter(({ isClosed }) => isClosed()).length;
  const all = (these: Client[], status: string, count: number) =>
    these.every(({ statuses }) => statuses().filter((given) => given === status).length === count);

  it.each([
    ["/nosuch", ""],
    ["/echo", ""],
    ["/-/openapi.json", ""],
    ["/-/livez", ""],
    ["/nosuch", "authorization: Bearer wrong\r\n"],
    ["/nosuch", "transfer-encoding: gzip, chunked\r\n"],
  ])("closes connections that pipeline, at %s with %j", async (path, header) => {
    const gateway = server.child("gateway");
    const greedy = await openMany(CONNECTIONS);
    await inOneTurn(() => {
      for (const { socket } of greedy) socket.write(get(path, header).repeat(AHEAD));
    });
    // A turn answers those of six. The system may deliver what was sent in more than one turn.
    await eventually("their end", () => closed(greedy) >= CONNECTIONS / 2);
    expect(server.child("gateway")).toBe(gateway);
  });

  it("answers each connection that has one request, such as a health check", async () => {
    const greedy = await openMany(CONNECTIONS);
    const patient = await openMany(2 * STRANGERS_OF_A_TURN_MAX);
    await inOneTurn(() => {
      for (const { socket } of greedy) socket.write(get("/nosuch").repeat(AHEAD));
      for (const { socket } of patient) socket.write(get("/-/livez"));
    });
    await eventually("their answers", () => all(patient, "200", 1));
    expect(closed(patient)).toBe(0);
  });

  it("answers predictions that callers may make, also pipelined", async () => {
    const greedy = await openMany(CONNECTIONS);
    const holders = await openMany(3);
    const visitors = await openMany(3);
    await inOneTurn(() => {
      for (const { socket } of greedy) socket.write(get("/nosuch").repeat(AHEAD));
      for (const { socket } of holders)
        socket.write(predict("/echo", `authorization: Bearer ${key}\r\n`).repeat(AHEAD));
      for (const { socket } of visitors) socket.write(predict("/open").repeat(AHEAD));
    });
    await eventually("their answers", () => all([...holders, ...visitors], "200", AHEAD));
    expect(closed([...holders, ...visitors])).toBe(0);
  });
});
