/** Handshakes of many TLS clients that send their ClientHello at once, through a real listener. */
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  HANDSHAKES_OF_A_TURN_MAX,
  HANDSHAKES_RETRIED_MAX,
  HANDSHAKING_OF_A_TURN_MS,
} from "../../../src/contracts/limits/requests.ts";
import { HandshakeTurns } from "../../../src/gateway/connections/handshake-turns.ts";
import { ReadingTurns } from "../../../src/gateway/connections/reading-turns.ts";
import type { TlsFiles } from "../../../src/gateway/connections/tls-context.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";

const CLIENTS = 100;
/** What a server that answers a ClientHello writes at least: its certificate is in it. */
const ANSWER_BYTES = 400;

describe("TLS clients that begin together", () => {
  let dir: string;
  let tls: TlsFiles;
  let hello: Buffer;
  let listener: Listener;
  let server: Server;
  let accepted: Socket[];
  let clients: { socket: Socket; received: number; isClosed: boolean }[];
  /** The handshakes that each turn began, and when each ended by its clock. */
  let turns: number[];
  let msOfOne: number;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "quern-handshakes-"));
    tls = makeCertificate(dir);
    hello = await firstMessage();
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  beforeEach(async () => {
    [accepted, clients, turns, msOfOne] = [[], [], [], 0];
    let nowMs = 0;
    const handshakes = new HandshakeTurns({
      nextTurn: (begin) =>
        setImmediate(() => {
          turns.push(0);
          begin();
        }),
      afterStep: (next) =>
        process.nextTick(() => {
          turns[turns.length - 1]!++;
          nowMs += msOfOne;
          next();
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
  const answered = () => clients.filter(({ received }) => received >= ANSWER_BYTES).length;

  it("are answered in many turns, each of a few handshakes", async () => {
    await openMany(CLIENTS);
    send(hello);
    await eventually("the answers", () => answered() === CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
    expect(turns.reduce((sum, each) => sum + each)).toBe(CLIENTS);
  });

  it("are answered one in each turn if signatures take long", async () => {
    msOfOne = HANDSHAKING_OF_A_TURN_MS;
    await openMany(CLIENTS);
    send(hello);
    await eventually("the answers", () => answered() === CLIENTS);
    expect(Math.max(...turns)).toBe(1);
  });

  it("wait for a turn too if they had sent all but the last byte before", async () => {
    await openMany(CLIENTS);
    send(hello.subarray(0, -1));
    await eventually("its arrival", () => accepted.every(({ bytesRead }) => bytesRead > 0));
    expect(turns).toHaveLength(0);
    send(hello.subarray(-1));
    await eventually("the answers", () => answered() === CLIENTS);
    expect(Math.max(...turns)).toBeLessThanOrEqual(HANDSHAKES_OF_A_TURN_MAX);
  });

  it("and without a key that suits the server may be few, because the next ClientHello has no turn", async () => {
    await openMany(CLIENTS);
    send(withUnknownKey(hello));
    const closed = () => clients.filter(({ isClosed }) => isClosed).length;
    await eventually("the end of the others", () => closed() >= CLIENTS - HANDSHAKES_RETRIED_MAX);
    expect(closed()).toBe(CLIENTS - HANDSHAKES_RETRIED_MAX);
    expect(clients.slice(-HANDSHAKES_RETRIED_MAX).every(({ isClosed }) => !isClosed)).toBe(true);
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

  it.each(["P-256", "P-384", "X25519"])("may have a key of %s only", async (ecdhCurve) => {
    const socket = await open({ ecdhCurve });
    expect(socket.getProtocol()).toBe("TLSv1.3");
    socket.destroy();
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

/** The same with the key of a group that no server knows. The client has to name the group among its own. */
function withUnknownKey(hello: Buffer): Buffer {
  const changed = Buffer.from(hello);
  // After the length of the groups: X25519 and P-256.
  const groups = changed.indexOf(Buffer.from([0, 29, 0, 23]));
  changed.writeUInt16BE(0x1a1a, groups + changed.readUInt16BE(groups - 2) - 2);
  // Type, length, length of the keys, and the group of the first and only key.
  const keys = changed.indexOf(Buffer.from([0, 51, 0, 38, 0, 36, 0, 29]));
  expect([groups > 0, keys > 0]).toEqual([true, true]);
  changed.writeUInt16BE(0x1a1a, keys + 6);
  return changed;
}
