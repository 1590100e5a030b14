/** Heads and trailers that never end, through a real listener. */
import { createServer as createHttpServer, get } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADERS_OF_A_REQUEST_MAX } from "../../../src/contracts/limits/requests.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { eventually } from "../../harness/eventually.ts";

const HEAD = "POST / HTTP/1.1\r\nhost: x\r\n";
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n`;
/** Node passes on 31 headers at once, and tells nothing of fewer. */
const FEW = HEADERS_OF_A_REQUEST_MAX - 31;
const MANY = HEADERS_OF_A_REQUEST_MAX + 31;
const headers = (count: number) => "a:b\r\n".repeat(count);

describe("a connection", () => {
  let listener: Listener;
  let server: Server;
  let socket: Socket;
  let received: string;
  let isClosed: boolean;
  /** The headers and trailers of each request that was handled. */
  let handled: [headers: number, trailers: number][];

  beforeEach(async () => {
    [received, isClosed, handled] = ["", false, []];
    listener = new Listener("parent", undefined, (request, response) => {
      request.on("error", () => {}).resume();
      request.on("end", () => {
        handled.push([request.rawHeaders.length / 2, request.rawTrailers.length / 2]);
        response.end();
      });
    });
    await listener.start();
    server = createServer((accepted) => listener.accept(accepted));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.on("data", (data) => (received += String(data)));
    socket.on("error", () => {}).on("close", () => (isClosed = true));
  });
  afterEach(async () => {
    socket.destroy();
    server.close();
    await listener.stop();
  });

  const answers = (status: number) => received.split(`HTTP/1.1 ${status} `).length - 1;
  async function answered(status: number): Promise<void> {
    await eventually("the answer", () => received !== "", 5_000);
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  }
  async function refused(): Promise<void> {
    await answered(431);
    await eventually("its end", () => isClosed, 5_000);
    expect([answers(431), handled.length]).toEqual([1, 0]);
  }

  it.each([
    ["a head", HEAD],
    ["trailers", CHUNKED],
  ])("that sends %s with too many headers, and no end, is refused", async (_, begin) => {
    socket.write(begin + headers(2_000));
    await refused();
  });

  it.each([
    ["a head", HEAD],
    ["trailers", CHUNKED],
  ])("is refused too if %s with too many headers arrives in parts", async (_, begin) => {
    socket.write(begin);
    for (let sent = 0; sent < MANY && !isClosed; sent += 10) {
      socket.write(headers(10));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await refused();
  });

  it("with too many trailers is refused also if they end", async () => {
    socket.write(`${CHUNKED}${headers(2_000)}\r\n`);
    await answered(431);
    await eventually("its end", () => isClosed, 5_000);
    expect(answers(200)).toBe(0);
  });

  it("may send as many headers and trailers as it likes below the limit, for many requests", async () => {
    const request = `${CHUNKED.replace("host: x\r\n", `host: x\r\n${headers(FEW)}`)}${headers(FEW)}\r\n`;
    for (let sent = 1; sent <= 3; sent++) {
      socket.write(request);
      await eventually("the answer", () => answers(200) === sent, 5_000);
    }
    expect(handled).toEqual(Array(3).fill([FEW + 2, FEW]));
  });

  it("whose head ends at once is refused by whoever handles it", async () => {
    socket.write(`${HEAD}content-length: 0\r\n${headers(MANY)}\r\n`);
    await answered(200);
    expect(handled).toEqual([[MANY + 2, 0]]);
  });

  it("that has ended leaves no bound to the clients of this process, which use its parser", async () => {
    socket.write(`${HEAD}content-length: 0\r\n\r\n`);
    await answered(200);
    socket.destroy();
    await listener.stop();
    const other = createHttpServer((_, response) =>
      response.writeHead(200, Array(2 * MANY).fill("a")).end(),
    ).listen(0, "127.0.0.1");
    await eventually("the other server", () => other.listening);
    const { port } = other.address() as AddressInfo;
    const count = await new Promise<number>((resolve, reject) => {
      get({ port, host: "127.0.0.1", agent: false, maxHeaderSize: 65_536 }, (answer) => {
        resolve(answer.rawHeaders.length / 2);
        answer.resume();
      }).on("error", reject);
    });
    expect(count).toBeGreaterThan(MANY);
    other.close();
  });
});
