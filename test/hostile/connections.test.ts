/** Connections that stay open: they hold bounded memory, and those in use are not closed. */
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { CONNECTION_NEW_MS } from "../../src/contracts/limits/requests.ts";
import { setOwner } from "../../src/gateway/connections/owners.ts";
import type { TlsFiles } from "../../src/gateway/connections/tls-context.ts";
import { Listener } from "../../src/gateway/door/listener.ts";
import { makeCertificate } from "../harness/certificates.ts";
import { eventually } from "../harness/eventually.ts";

const MOST = 5;

afterEach(() => vi.restoreAllMocks());

/** Does not wait. */
function passTime(ms: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
}

describe.each(["plain", "TLS"])("more %s connections than a listener holds", (kind) => {
  let dir: string;
  let tls: TlsFiles | undefined;
  let listener: Listener;
  let server: Server;
  let clients: Socket[];
  /** Requests for /held, which wait for their answers. */
  let held: ServerResponse[];
  /** Who sends the next requests. */
  let sender: string | undefined;

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "quern-connections-"));
    if (kind === "plain") return;
    tls = makeCertificate(dir);
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  beforeEach(async () => {
    [clients, held] = [[], []];
    const take = (url: string | undefined, response: ServerResponse) => {
      if (sender !== undefined) setOwner(response.req.socket, sender);
      if (url === "/held") held.push(response);
      else response.end();
    };
    listener = new Listener("parent", tls, ({ url }, response) => take(url, response), MOST);
    await listener.start();
    server = createServer((socket) => listener.accept(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    for (const client of clients) client.destroy();
    server.close();
    await listener.stop();
  });

  async function open(localAddress = "127.0.0.1"): Promise<Socket> {
    const to = { port: (server.address() as AddressInfo).port, host: "127.0.0.1", localAddress };
    const client = kind === "plain" ? connect(to) : connectTls({ ...to, rejectUnauthorized: false });
    clients.push(client);
    client.on("error", () => {});
    await new Promise((resolve) => client.once(kind === "plain" ? "connect" : "secureConnect", resolve));
    return client;
  }

  const ask = (client: Socket, path: string) => client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);

  /** Resolves once the answer is here. */
  async function use(client: Socket): Promise<void> {
    const answered = new Promise((resolve) => client.once("data", resolve));
    ask(client, "/");
    await answered;
  }

  async function openAndUse(): Promise<void> {
    await use(await open());
  }

  async function openAndHold(): Promise<void> {
    ask(await open(), "/held");
    const count = held.length + 1;
    await eventually("the request is there", () => held.length === count);
  }

  const closed = () => clients.flatMap((client, index) => (client.closed ? [index] : []));

  it("close one that is idle, and none that is in use", async () => {
    await openAndHold();
    for (let one = 1; one < MOST; one++) await openAndUse();
    await openAndUse();
    await eventually("one is closed", () => closed().length > 0);
    expect(closed()).toEqual([1]);
    await use(clients[2]!);
    await openAndUse();
    await eventually("another one is closed", () => closed().length > 1);
    expect(closed()).toEqual([1, 3]);
    const answered = new Promise((resolve) => clients[0]!.once("data", resolve));
    held[0]!.end();
    await answered;
    for (const index of [0, 2, 4, 5, 6]) await use(clients[index]!);
  });

  it("close only their own, if all of one address have requests in progress", async () => {
    await openAndUse();
    const ours = await open();
    sender = "key";
    await use(ours);
    sender = undefined;
    for (let one = 0; one < 3 * MOST; one++) {
      const count = held.length + 1;
      ask((await open("127.0.0.2")).resume(), "/held");
      await eventually("the request is there", () => held.length === count);
    }
    await use(clients[0]!);
    await use(ours);
    // A new one of another address is served too.
    await openAndUse();
    const openOnes = () => clients.flatMap(({ closed }, index) => (closed ? [] : [index]));
    await eventually("the others are closed", () => openOnes().length === MOST);
    expect(openOnes()).toEqual([0, 1, 3 * MOST, 3 * MOST + 1, 3 * MOST + 2]);
  });

  it("close those whose request never ends its head", async () => {
    for (let one = 0; one < MOST; one++) (await open()).resume().write("GET /held HTTP/1.1\r\nx: ");
    passTime(CONNECTION_NEW_MS);
    for (let one = 0; one < MOST; one++) await openAndUse();
    // Too late.
    for (const client of clients.slice(0, MOST)) client.write("x\r\nhost: x\r\n\r\n");
    await eventually("all of them are closed", () => closed().length === MOST);
    expect([closed(), held.length]).toEqual([[0, 1, 2, 3, 4], 0]);
  });
});
