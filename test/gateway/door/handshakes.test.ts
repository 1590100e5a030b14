/** Handshakes of many TLS clients that send the same message at once, through a real listener. */
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  HANDSHAKE_BYTES_MAX,
  HANDSHAKES_OF_A_TURN_MAX,
  HANDSHAKING_OF_A_TURN_MS,
} from "../../../src/contracts/limits/requests.ts";
import type { TlsFiles } from "../../../src/gateway/connections/tls-context.ts";
import { HandshakeTurns } from "../../../src/gateway/connections/turns/handshake-turns.ts";
import { ReadingTurns } from "../../../src/gateway/connections/turns/reading-turns.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { makeCertificate, RSA } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";
import { HeldTlsClient } from "../../harness/held-tls-client.ts";
import { longestTurnCpuMs } from "../../harness/turns.ts";

const CLIENTS = 100;
/** What a server that answers a ClientHello writes at least: its certificate is in it. */
const ANSWER_BYTES = 400;
/** Of a handshake. */
const EMPTY_RECORD = Buffer.from([22, 3, 1, 0, 0]);
const LARGE = 500_000;

describe("TLS clients that begin together", () => {
  let dir: string;
  let tls: TlsFiles;
  let hello: Buffer;
  let listener: Listener;
  let server: Server;
  let accepted: Socket[];
  let clients: { socket: Socket; received: number; isClosed: boolean }[];
  /** How many parts of handshakes each turn gave to TLS, and how long each took by its clock. */
  let turns: number[];
  let msOfOne: number;
  let nowMs: number;
  class CountedTurns extends HandshakeTurns {
    override push(owner: string, socket: Socket, give: () => void): void {
      super.push(owner, socket, () => {
        turns[turns.length - 1]!++;
        nowMs += msOfOne;
        give();
      });
    }
  }

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "quern-handshakes-"));
    // With a key of P-256, only clients that support this group could use TLS 1.2.
    tls = makeCertificate(dir, "quern", RSA);
    hello = await firstMessage();
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  beforeEach(async () => {
    [accepted, clients, turns, msOfOne, nowMs] = [[], [], [], 0, 0];
    const handshakes = new CountedTurns({
      nextTurn: (begin) =>
        setImmediate(() => {
          turns.push(0);
          begin();
        }),
      nowMs: () => nowMs,
    });
    const answer = (_: unknown, response: { end: () => void }) => response.end();
    listener = new Listener("parent", tls, answer, 1_000, new ReadingTurns(), handshakes);
    await listener.start();
    server = createServer((socket) => {
      accepted.push(socket);
      listener.accept(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    for (const { socket } of clients) socket.destroy();
    server.close();
    await listener.stop();
  });

  const port = () => (server.address() as AddressInfo).port;
  async function openMany(count: number): Promise<void> {
    for (let each = 0; each < count; each++) {
      const client = { socket: connect(port(), "127.0.0.1"), received: 0, isClosed: false };
      client.socket.on("data", (data) => (client.received += data.length)).on("error", () => {});
      client.socket.on("close", () => (client.isClosed = true));
      clients.push(client);
    }
    await eventually("the connections", () => accepted.length === count);
  }
  const send = (part: Buffer) => clients.map(({ socket }) => socket.write(part));
  const given = () => turns.reduce((sum, each) => sum + each, 0);
  const answered = () => clients.filter(({ received }) => received >= ANSWER_BYTES).length;

  it("are answered in many turns, each of a few handshakes", async () => {
    await openMany(CLIENTS);
    send(hello);
    await eventually("the answers", () => answered() === CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
    expect(given()).toBe(CLIENTS);
  });

  it("are answered one in each turn if signatures take long", async () => {
    msOfOne = HANDSHAKING_OF_A_TURN_MS;
    await openMany(CLIENTS);
    send(hello);
    await eventually("the answers", () => answered() === CLIENTS);
    expect(Math.max(...turns)).toBe(1);
  });

  it("wait for a turn with each part of their ClientHello", async () => {
    await openMany(CLIENTS);
    send(hello.subarray(0, -1));
    await eventually("the first parts", () => given() === CLIENTS);
    expect(answered()).toBe(0);
    send(hello.subarray(-1));
    await eventually("the answers", () => answered() === CLIENTS);
    expect(given()).toBe(2 * CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
  });

  it("wait for a turn with their ClientHello after an empty record", async () => {
    await openMany(CLIENTS);
    send(EMPTY_RECORD);
    await eventually("the empty records", () => given() === CLIENTS);
    send(hello);
    await eventually("the answers", () => answered() === CLIENTS);
    expect(given()).toBe(2 * CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
  });

  it.each([
    ["ClientKeyExchange (TLS 1.2)", { maxVersion: "TLSv1.2", ecdhCurve: "P-384" }, 2],
    ["Finished (TLS 1.3)", { minVersion: "TLSv1.3" }, 2],
    // The server supports no P-521.
    ["second ClientHello (TLS 1.3)", { minVersion: "TLSv1.3", ecdhCurve: "P-521:P-384" }, 3],
  ] as const)("wait for a turn with their %s", async (_, offer, messages) => {
    const held = Array.from({ length: CLIENTS }, () => new HeldTlsClient(port(), offer));
    await eventually("their next messages", () => held.every(({ isHolding }) => isHolding));
    expect(given()).toBe(CLIENTS);
    for (const client of held) client.release();
    await eventually("the end of all handshakes", () => held.every(({ isSecure }) => isSecure));
    await eventually("the server knows", () => given() >= messages * CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
    for (const client of held) client.destroy();
  });

  it("are closed if they send too much before their handshake is over", async () => {
    await openMany(2);
    const [one, other] = clients;
    one!.socket.write(Buffer.alloc(HANDSHAKE_BYTES_MAX + 1, hello));
    for (let sent = 0; sent <= HANDSHAKE_BYTES_MAX; sent += EMPTY_RECORD.length)
      other!.socket.write(EMPTY_RECORD);
    await eventually("they are closed", () => clients.every(({ isClosed }) => isClosed));
  });

  it.each(["GET / HTTP/1.1\r\n\r\n", ""])("are closed if they send %j and end", async (sent) => {
    await openMany(1);
    clients[0]!.socket.end(sent);
    await eventually("it is closed", () => accepted[0]!.destroyed);
  });

  it("get no cipher whose key the server would have to decrypt", async () => {
    const offer = {
      port: port(),
      rejectUnauthorized: false,
      maxVersion: "TLSv1.2",
      ciphers: "kRSA",
    } as const;
    const error = await new Promise<Error>((resolve) => connectTls(offer).once("error", resolve));
    expect(String(error)).toMatch(/handshake failure/);
  });

  it("get no group of a large finite field", async () => {
    const offer = { port: port(), rejectUnauthorized: false, ecdhCurve: "ffdhe8192:ffdhe2048" };
    const error = await new Promise<Error | undefined>((resolve) =>
      connectTls({ ...offer, minVersion: "TLSv1.3" }, () => resolve(undefined)).once("error", resolve),
    );
    expect(String(error)).toMatch(/handshake failure/);
  });

  it.each(
    ["P-256", "P-384", "X25519"].flatMap((curve) =>
      (["TLSv1.2", "TLSv1.3"] as const).map((version) => [curve, version] as const),
    ),
  )("may have a key of %s only, with %s", async (ecdhCurve, maxVersion) => {
    const socket = await open({ ecdhCurve, maxVersion });
    expect(socket.getProtocol()).toBe(maxVersion);
    expect(await livez(socket)).toBe("HTTP/1.1 200 OK");
    socket.destroy();
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("may resume a session of %s", async (maxVersion) => {
    const first = await open({ maxVersion });
    await livez(first);
    const again = await open({ maxVersion, session: first.getSession()! });
    expect(again.isSessionReused()).toBe(true);
    expect(await livez(again)).toBe("HTTP/1.1 200 OK");
    first.destroy();
    again.destroy();
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("may send byte by byte with %s", async (maxVersion) => {
    const client = new HeldTlsClient(port(), { maxVersion }, 1);
    client.release();
    await eventually("the handshake", () => client.isSecure);
    expect(await livez(client.tls)).toBe("HTTP/1.1 200 OK");
    client.destroy();
  });

  it("may send a large request with the end of the handshake", async () => {
    const client = new HeldTlsClient(port(), { minVersion: "TLSv1.3" });
    client.tls.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${LARGE}\r\n\r\n`);
    client.tls.write(Buffer.alloc(LARGE));
    await eventually("the end of the handshake", () => client.isHolding && client.isSecure);
    client.release();
    expect(await firstLine(client.tls)).toBe("HTTP/1.1 200 OK");
    client.destroy();
  });

  it("cannot begin another one on an open connection, also after a change of the certificate", async () => {
    expect(await renegotiate()).toBe("ERR_SSL_NO_RENEGOTIATION");
    const subject = async () => {
      const socket = await open();
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      return CN;
    };
    expect(await subject()).toBe("quern");
    makeCertificate(dir, "renewed");
    await eventually("the certificate", async () => (await subject()) === "renewed");
    expect(await renegotiate()).toBe("ERR_SSL_NO_RENEGOTIATION");
  });

  it("cause no long turn", async () => {
    const offer = { maxVersion: "TLSv1.2", ecdhCurve: "P-384" } as const;
    const held = Array.from({ length: 2 * CLIENTS }, () => new HeldTlsClient(port(), offer));
    await eventually("their next messages", () => held.every(({ isHolding }) => isHolding));
    // Four messages fill a turn.
    msOfOne = 3;
    const longestMs = await longestTurnCpuMs(async () => {
      for (const client of held) client.release();
      await eventually("the end of all handshakes", () => held.every(({ isSecure }) => isSecure));
    });
    expect(longestMs).toBeLessThan(150);
    for (const client of held) client.destroy();
  });

  /** The first line of the response. */
  async function livez(socket: TLSSocket): Promise<string> {
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    return firstLine(socket);
  }
  function firstLine(socket: TLSSocket): Promise<string> {
    return new Promise((resolve) => socket.once("data", (data) => resolve(String(data).split("\r\n")[0]!)));
  }
  function open(offer: ConnectionOptions = {}): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const to = { port: port(), rejectUnauthorized: false, ...offer };
      const socket = connectTls(to, () => resolve(socket)).once("error", reject);
    });
  }
  /** The code of the error that ends the connection. */
  async function renegotiate(): Promise<string | undefined> {
    const socket = await open({ maxVersion: "TLSv1.2" });
    const error = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
      socket.once("error", resolve);
      socket.renegotiate({ rejectUnauthorized: false }, resolve);
    });
    socket.destroy();
    return error?.code;
  }
});

/** The ClientHello of Node's own client, with a key for X25519. */
function firstMessage(): Promise<Buffer> {
  return new Promise((resolve) => {
    const socket = new Duplex({ read: () => {}, write: (sent: Buffer) => resolve(sent) });
    connectTls({ socket, ecdhCurve: "X25519:P-256" });
  });
}
