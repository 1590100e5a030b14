/** TLS records that carry no data, or a byte each, through a real listener. */
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { SILENT_RECORDS_BYTES_MAX, TLS_PIECE_BYTES } from "../../../src/contracts/limits/requests.ts";
import type { TlsFiles } from "../../../src/gateway/connections/tls-context.ts";
import { ReadingTurns } from "../../../src/gateway/connections/turns/reading-turns.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";

const CLIENT = join(import.meta.dirname, "../../harness/tls_client.py");
/** Of a record that has one byte, or none: its header, the type of its content, and 16 bytes that prove it. */
const RECORD_BYTES = 22;
const KEY_UPDATE_BYTES = RECORD_BYTES + 5;
/** The parts that so many bytes are at least. What comes in one piece with the end of the handshake has its turn. */
const partsOf = (bytes: number) => (bytes - TLS_PIECE_BYTES) / 512;

describe("TLS records", () => {
  let dir: string;
  let tls: TlsFiles;
  let listener: Listener;
  let server: Server;
  let turns: ReadingTurns;
  /** Of all calls. */
  let parts: number;
  let accepted: Socket[];
  /** The requests whose body has begun, and how each ended. */
  let begun: number;
  let ends: string[];

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "quern-records-"));
    tls = makeCertificate(dir);
  });
  afterAll(() => rmSync(dir, { recursive: true }));
  beforeEach(async () => {
    [parts, accepted, begun, ends] = [0, [], 0, []];
    turns = new ReadingTurns();
    const count = turns.count.bind(turns);
    vi.spyOn(turns, "count").mockImplementation((more = 1) => {
      parts += more;
      count(more);
    });
    listener = new Listener(
      "parent",
      tls,
      (request, response) => {
        let bytes = 0;
        request.once("data", () => begun++);
        request.on("error", () => {}).on("data", (piece: Buffer) => (bytes += piece.length));
        request.on("end", () => response.end(String(bytes)));
        request.on("close", () => ends.push(request.complete ? "complete" : "broken off"));
      },
      1_000,
      turns,
    );
    await listener.start();
    server = createServer((socket) => {
      accepted.push(socket);
      listener.accept(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    server.close();
    await listener.stop();
  });

  const port = () => (server.address() as AddressInfo).port;

  /** What the client has sent, and the first line of the response. */
  async function send(what: "updates" | "bytes", times: number): Promise<[sent: number, response: string]> {
    const { stdout } = await promisify(execFile)("python3", [CLIENT, String(port()), what, String(times)]);
    const [, sent, response] = /^(\d+) (.*)\n$/.exec(stdout)!;
    return [Number(sent), response!];
  }

  function open(): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: port(), rejectUnauthorized: false }, () => resolve(socket));
      socket.on("error", reject);
    });
  }

  it("may change the key some times", async () => {
    const times = Math.floor((SILENT_RECORDS_BYTES_MAX - TLS_PIECE_BYTES) / KEY_UPDATE_BYTES);
    expect(await send("updates", times)).toEqual([times, "HTTP/1.1 200 OK"]);
  });

  it("close the connection if they change the key for ever, and each counts as work", async () => {
    expect((await send("updates", 50_000))[1]).toBe("");
    expect(accepted[0]!.destroyed).toBe(true);
    expect(parts).toBeGreaterThanOrEqual(partsOf(SILENT_RECORDS_BYTES_MAX));
  });

  it("of a byte each count as work", async () => {
    expect(await send("bytes", 2_000)).toEqual([2_000, "HTTP/1.1 200 OK"]);
    expect(parts).toBeGreaterThanOrEqual(partsOf(2_000 * (RECORD_BYTES + 1)));
  });

  it("of a large body arrive whole, also if the client does not wait", async () => {
    const socket = await open();
    const body = Buffer.alloc(20_000_000, 7);
    let received = "";
    socket.on("data", (piece) => (received += String(piece)));
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.write(body);
    await eventually("the response", () => received.includes("\r\n\r\n20000000"), 20_000);
    socket.destroy();
  });

  it.each(["end", "destroy"] as const)("that stop in a body: %s", async (how) => {
    const socket = await open();
    socket.on("error", () => {}).write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab");
    await eventually("the body begins", () => begun === 1);
    socket[how]();
    await eventually("the server closes", () => accepted[0]!.destroyed);
    expect(ends).toEqual(["broken off"]);
  });

  it("that stop in a body: the connection is reset", async () => {
    const client = spawn("python3", [CLIENT, String(port()), "reset"]);
    await eventually("the body begins", () => begun === 1);
    client.stdin.end("\n");
    await eventually("the server closes", () => accepted[0]!.destroyed);
    expect(ends).toEqual(["broken off"]);
  });
});
