/** Many requests that a gateway gets in one turn of its event loop, with and without keys: all are answered. */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../../src/contracts/limits/requests.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const CONNECTIONS = 150;
const AHEAD = REQUESTS_OF_A_CONNECTION_MAX - 1;

describe("a burst of requests", () => {
  const server = new TestServer();
  const clients: Client[] = [];
  let key: string;
  let keyOfAnother: string;

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
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const create = async (api: string) => {
      const asked = { scope: "predict", api };
      const answer = await server.post("/-/keys", asked, { authorization: `Bearer ${token}` });
      return ((await answer.json()) as { key: string }).key;
    };
    [key, keyOfAnother] = [await create("echo"), await create("open")];
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
    ["/nosuch", "", "401"],
    ["/echo", "", "401"],
    ["/-/livez", "", "200"],
    ["/nosuch", "authorization: Bearer wrong\r\n", "401"],
  ])("is answered completely, at %s with %j", async (path, header, status) => {
    const gateway = server.child("gateway");
    const greedy = await openMany(CONNECTIONS);
    await inOneTurn(() => {
      for (const { socket } of greedy) socket.write(get(path, header).repeat(AHEAD));
    });
    await eventually("their answers", () => all(greedy, status, AHEAD));
    expect(closed(greedy)).toBe(0);
    expect(server.child("gateway")).toBe(gateway);
  });

  it.each([
    ["transfer-encoding: gzip, chunked\r\n", "501"],
    ["expect: x\r\n", "417"],
  ])("of which each ends its connection, with %j, gets one answer on each", async (header, status) => {
    const greedy = await openMany(CONNECTIONS);
    await inOneTurn(() => {
      for (const { socket } of greedy) socket.write(get("/nosuch", header).repeat(AHEAD));
    });
    await eventually("their end", () => closed(greedy) === CONNECTIONS);
    expect(all(greedy, status, 1)).toBe(true);
  });

  it("costs no other caller an answer: a health check, a prediction with a key, or of an open API", async () => {
    const strangers = await openMany(CONNECTIONS);
    const refused = await openMany(CONNECTIONS);
    const probes = await openMany(CONNECTIONS);
    const holders = await openMany(3);
    const visitors = await openMany(3);
    await inOneTurn(() => {
      for (const { socket } of strangers) socket.write(get("/nosuch").repeat(AHEAD));
      const header = `authorization: Bearer ${keyOfAnother}\r\n`;
      for (const { socket } of refused) socket.write(predict("/echo", header).repeat(AHEAD));
      for (const { socket } of probes) socket.write(get("/-/livez"));
      for (const { socket } of holders)
        socket.write(predict("/echo", `authorization: Bearer ${key}\r\n`).repeat(AHEAD));
      for (const { socket } of visitors) socket.write(predict("/open").repeat(AHEAD));
    });
    await eventually("the probes' answers", () => all(probes, "200", 1));
    await eventually("the predictions", () => all([...holders, ...visitors], "200", AHEAD));
    await eventually("the others' answers", () => all(refused, "403", AHEAD) && all(strangers, "401", AHEAD));
    expect(closed(clients)).toBe(0);
  });
});
