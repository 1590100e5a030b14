/** What one turn of the event loop handles of what many clients send at once, through a real listener. */
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ServiceError } from "../../../../src/contracts/errors.ts";
import {
  READING_OF_A_TURN_MS,
  REQUESTS_OF_A_CONNECTION_MAX,
} from "../../../../src/contracts/limits/requests.ts";
import { refuseLast } from "../../../../src/gateway/answers/refuse.ts";
import { setOwner } from "../../../../src/gateway/connections/owners.ts";
import type { TlsFiles } from "../../../../src/gateway/connections/tls-context.ts";
import { ReadingTurns } from "../../../../src/gateway/connections/turns/reading-turns.ts";
import { Listener } from "../../../../src/gateway/door/listener.ts";
import { makeCertificate } from "../../../harness/certificates.ts";
import { eventually } from "../../../harness/eventually.ts";

const CLIENTS = 100;
const WRONG = new ServiceError("invalid_request", "wrong");
const AHEAD = REQUESTS_OF_A_CONNECTION_MAX - 1;
/** The clock of the turns moves only when it is read: after 16 parts. */
const MS_OF_A_READING = READING_OF_A_TURN_MS / 4;
const PARTS_OF_A_TURN = 16 * (2 + READING_OF_A_TURN_MS / MS_OF_A_READING);
/** All requests of one connection: a head, and the end of a body. */
const PARTS_OF_A_CONNECTION = 2 * REQUESTS_OF_A_CONNECTION_MAX;

const get = (path: string, header = "") => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${header}\r\n`;

describe.each(["plain", "TLS"])("a burst on many %s connections", (kind) => {
  let dir: string;
  let tls: TlsFiles | undefined;
  let listener: Listener;
  let server: Server;
  let turns: ReadingTurns;
  let clients: { socket: Socket; received: string; isClosed: boolean }[];
  /** The parts that each turn counted. */
  let counted: number[];
  let isOver: boolean;
  /** The paths of requests, in the order in which they were handled. */
  let handled: string[];

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "quern-bursts-"));
    if (kind === "plain") return;
    tls = makeCertificate(dir);
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  beforeEach(async () => {
    [clients, counted, handled, isOver] = [[], [0], [], false];
    let nowMs = 0;
    turns = new ReadingTurns(setImmediate, () => (nowMs += MS_OF_A_READING));
    const count = turns.count.bind(turns);
    vi.spyOn(turns, "count").mockImplementation((parts) => {
      // Not what TLS reads: it comes in pieces, whatever the requests are.
      if (parts === undefined) counted[counted.length - 1]!++;
      count(parts);
    });
    listener = new Listener(
      "parent",
      tls,
      (request, response) => {
        handled.push(request.url!);
        if (request.headers.authorization !== undefined) setOwner(request.socket, "key");
        if (request.url === "/wrong") return refuseLast(request, response, WRONG, "id");
        request.resume();
        response.end();
      },
      1_000,
      turns,
    );
    await listener.start();
    server = createServer((socket) => listener.accept(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    isOver = true;
    for (const { socket } of clients) socket.destroy();
    server.close();
    await listener.stop();
    vi.restoreAllMocks();
  });

  /** Resolves once the gateway has read from the connection. */
  async function open(header = ""): Promise<(typeof clients)[number]> {
    const to = { port: (server.address() as AddressInfo).port, host: "127.0.0.1" };
    const socket = kind === "plain" ? connect(to) : connectTls({ ...to, rejectUnauthorized: false });
    const client = { socket, received: "", isClosed: false };
    clients.push(client);
    socket.on("data", (data) => (client.received += String(data)));
    socket.on("error", () => {}).on("close", () => (client.isClosed = true));
    socket.write(get("/hello", header));
    await eventually("the connection", () => client.received !== "");
    client.received = "";
    return client;
  }
  const openMany = (count: number) => Promise.all(Array.from({ length: count }, () => open()));
  /** Everything is with the system before the event loop goes on. */
  async function send(text: string, to = clients): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    for (const { socket } of to) socket.write(text);
    counted = [0];
    handled = [];
    const next = () => {
      counted.push(0);
      if (!isOver) setImmediate(next);
    };
    setImmediate(next);
  }
  const most = () => counted.reduce((largest, each) => Math.max(largest, each), 0);
  const all = () => counted.reduce((sum, each) => sum + each, 0);
  const answers = (client: (typeof clients)[number]) => client.received.split("HTTP/1.1 ").length - 1;

  it("of pipelined requests is answered in many turns, and completely", async () => {
    await openMany(CLIENTS);
    await send(get("/x").repeat(AHEAD));
    await eventually("the answers", () => clients.every((client) => answers(client) === AHEAD));
    expect(handled).toHaveLength(CLIENTS * AHEAD);
    expect(all()).toBeGreaterThanOrEqual(2 * CLIENTS * AHEAD);
    expect(most()).toBeLessThanOrEqual(PARTS_OF_A_TURN + PARTS_OF_A_CONNECTION);
  });

  it.each([
    ["with an unknown expectation", get("/x", "expect: x\r\n").repeat(AHEAD)],
    ["of CONNECT", "CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n"],
  ])("of requests %s is refused in many turns", async (_, text) => {
    await openMany(CLIENTS);
    await send(text);
    await eventually("their end", () => clients.every(({ isClosed }) => isClosed));
    expect(most()).toBeLessThanOrEqual(PARTS_OF_A_TURN + PARTS_OF_A_CONNECTION);
    expect(clients.every((client) => answers(client) <= 1)).toBe(true);
  });

  it.each([
    ["an unknown expectation", get("/x", "expect: x\r\n")],
    ["a wrong head", get("/wrong")],
  ])("stops the reading of requests after one with %s, which ends its connection", async (_, text) => {
    await openMany(10);
    await send(text.repeat(AHEAD));
    await eventually("their end", () => clients.every(({ isClosed }) => isClosed));
    expect(clients.every((client) => answers(client) === 1)).toBe(true);
    // The request, the head of the next one, and the end of the connection.
    expect(all()).toBeLessThanOrEqual(10 * 6);
  });

  it("of bodies in small chunks is read in many turns", async () => {
    const [few, chunks] = [20, 10_000];
    await openMany(few);
    await send(
      `POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(chunks)}0\r\n\r\n`,
    );
    await eventually("the answers", () => all() >= few * chunks);
    // Node reads 64 KiB at once.
    expect(most()).toBeLessThanOrEqual(PARTS_OF_A_TURN + 65_536 / "1\r\nx\r\n".length);
  });

  it.each([
    ["that is not HTTP", (socket: Socket) => socket.write("hello\r\n\r\n")],
    ["that ends", (socket: Socket) => socket.destroy()],
  ])("of something %s is handled in many turns", async (_, act) => {
    const many = 3 * CLIENTS;
    await openMany(many);
    await send("");
    for (const { socket } of clients) act(socket);
    await eventually("the end of the connections", () => all() >= 2 * many);
    // Each connection that ends is closed in the same turn, or in the next.
    expect(most()).toBeLessThanOrEqual(2 * PARTS_OF_A_TURN + PARTS_OF_A_CONNECTION);
  });

  it("of heads that never end is refused in many turns", async () => {
    await openMany(CLIENTS);
    await send(`GET /x HTTP/1.1\r\n${"ab:cd\r\n".repeat(2_000)}`);
    await eventually("their end", () => clients.every(({ isClosed }) => isClosed));
    expect(clients.every(({ received }) => received.startsWith("HTTP/1.1 431 "))).toBe(true);
    // Node 20 passes on 31 headers at once, and Node 24 twice as many.
    const [flushes, fewer, ends] = [Math.floor(2_000 / 31), Math.floor(2_000 / 63), 2];
    expect(all()).toBeGreaterThanOrEqual(CLIENTS * fewer);
    expect(most()).toBeLessThanOrEqual(2 * PARTS_OF_A_TURN + flushes + ends);
  });

  it("lets a key in before the rest of them", async () => {
    await openMany(CLIENTS);
    const greedy = [...clients];
    const patient = await open("authorization: x\r\n");
    await send(get("/greedy").repeat(AHEAD), greedy);
    patient.socket.write(get("/patient"));
    await eventually("the answers", () => handled.length === CLIENTS * AHEAD + 1);
    // The turn that takes too long, and the one after it.
    const turn = PARTS_OF_A_TURN / 2 + REQUESTS_OF_A_CONNECTION_MAX;
    expect(handled.indexOf("/patient")).toBeLessThan(2 * turn);
  });
});
