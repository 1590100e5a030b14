/** Connections whose request comes too late, through Node's HTTP server. */
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LATE_AT_ONCE_MAX } from "../../../src/contracts/limits/requests.ts";
import { endLateInTurns } from "../../../src/gateway/door/late-connections.ts";
import { eventually } from "../../harness/eventually.ts";

const CLIENTS = 3 * LATE_AT_ONCE_MAX;

describe("connections whose request does not come", () => {
  let server: Server;
  let clients: { socket: Socket; received: string; isClosed: boolean }[];
  let accepted: Socket[];
  /** How many connections each turn has closed. */
  let turns: number[];

  beforeEach(async () => {
    [clients, accepted, turns] = [[], [], []];
    const closed = () => accepted.filter(({ destroyed }) => destroyed).length;
    server = createServer({ headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 50 });
    server.on("connection", (socket: Socket) => accepted.push(socket));
    endLateInTurns(server, (next) =>
      setImmediate(() => {
        const before = closed();
        next();
        turns.push(closed() - before);
      }),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    for (const { socket } of clients) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  function open(text = ""): (typeof clients)[number] {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const client = { socket, received: "", isClosed: false };
    socket.on("data", (data) => (client.received += String(data))).on("error", () => {});
    socket.on("close", () => (client.isClosed = true));
    if (text !== "") socket.write(text);
    clients.push(client);
    return client;
  }
  const end = () => eventually("their end", () => clients.every(({ isClosed }) => isClosed));

  it("are closed a few in each turn, each with a response", async () => {
    for (let each = 0; each < CLIENTS; each++) open();
    await end();
    expect(Math.max(...turns)).toBeLessThanOrEqual(LATE_AT_ONCE_MAX);
    expect(turns.reduce((sum, each) => sum + each)).toBe(CLIENTS);
    expect(clients.every(({ received }) => received.startsWith("HTTP/1.1 408 "))).toBe(true);
  });

  it.each([
    ["hello\r\n\r\n", "400 Bad Request"],
    [`GET / HTTP/1.1\r\na: ${"x".repeat(20_000)}\r\n\r\n`, "431 Request Header Fields Too Large"],
  ])("get the status that Node gives, and a request id, after %j", async (text, status) => {
    const client = open(text);
    await end();
    const head = /^HTTP\/1\.1 (.*)\r\nConnection: close\r\nX-Request-Id: [\w-]+\r\n\r\n$/;
    expect(head.exec(client.received)?.[1]).toBe(status);
    expect(turns).toEqual([]);
  });
});
