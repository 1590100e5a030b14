/** Requests that ask for another protocol, and what is sent ahead behind them, through real listeners. */
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";

const GET = "GET /plain HTTP/1.1\r\nhost: x\r\n\r\n";
const upgrade = (method: string, more: string) =>
  `${method} /upgrade HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n${more}`;
const UPGRADE = upgrade("GET", "\r\n");

describe.each(["plain", "TLS"])("over %s, a request with an upgrade", (transport) => {
  let dir: string;
  let listener: Listener;
  let server: Server;
  let client: Socket;
  let isLate: boolean;
  let handled: string[];
  let received: string;
  let isClosed: boolean;

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "quern-upgrades-"));
  });
  afterAll(() => rmSync(dir, { recursive: true }));
  afterEach(async () => {
    client.destroy();
    server.close();
    await listener.stop();
  });

  /** `late`: responses come in a later turn of the event loop than their requests. */
  async function open(late: boolean): Promise<void> {
    [isLate, handled, received, isClosed] = [late, [], "", false];
    listener = new Listener(
      "parent",
      transport === "TLS" ? makeCertificate(dir) : undefined,
      (request, response) => {
        const answer = () => {
          handled.push(request.url!);
          response.writeHead(200, { "content-length": 2 }).end("ok");
        };
        if (isLate) request.resume().on("end", () => setImmediate(answer));
        else answer();
      },
    );
    await listener.start();
    server = createServer((socket) => listener.accept(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const to = { port: (server.address() as AddressInfo).port, host: "127.0.0.1" };
    client = transport === "TLS" ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
    client.on("data", (data) => (received += String(data)));
    client.on("error", () => {}).on("close", () => (isClosed = true));
  }
  const answers = () => received.split("HTTP/1.1 200").length - 1;

  it.each([false, true])("keeps its connection if nothing was sent ahead (late: %s)", async (late) => {
    await open(late);
    for (let sent = 1; sent <= 3; sent++) {
      client.write(sent === 2 ? GET : UPGRADE);
      await eventually("the answer", () => answers() === sent, 5_000);
    }
    client.write(upgrade("POST", "content-length: 4\r\n\r\nbo"));
    await new Promise((resolve) => setImmediate(resolve));
    client.write("dy");
    await eventually("the answer", () => answers() === 4, 5_000);
    expect([isClosed, received.includes("close")]).toEqual([false, false]);
  });

  it.each([
    ["a request", false, GET + UPGRADE + GET],
    ["a request", true, GET + UPGRADE + GET],
    ["a request without its end", true, GET + UPGRADE + GET.slice(0, 20)],
    ["a request, behind its body", true, `${GET}${upgrade("POST", "content-length: 2\r\n\r\n{}")}${GET}`],
  ])("ends its connection after its response if %s was sent ahead (late: %s)", async (_, late, sent) => {
    await open(late);
    client.write(sent);
    await eventually("the end", () => isClosed, 5_000);
    expect([handled, answers()]).toEqual([["/plain", "/upgrade"], 2]);
    if (late) expect(received.match(/connection: close/gi)?.length).toBe(1);
  });
});
