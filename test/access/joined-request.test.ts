/** Bodies in many small chunks, through Node's HTTP server. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JoinedRequest } from "../../src/access/joined-request.ts";
import { eventually } from "../harness/eventually.ts";

const HEAD = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

describe("a body", () => {
  let server: Server;
  let client: Socket;
  let requests: IncomingMessage[];
  let parts: Buffer[];
  let isRead: boolean;

  beforeEach(async () => {
    [requests, parts, isRead] = [[], [], true];
    server = createServer({ IncomingMessage: JoinedRequest }, (request, response) => {
      requests.push(request);
      if (isRead) read(request);
      request.on("end", () => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.on("error", () => {});
    await new Promise((resolve) => client.once("connect", resolve));
  });
  afterEach(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });

  const read = (request: IncomingMessage) => request.on("data", (part: Buffer) => parts.push(part));
  const body = () => Buffer.concat(parts).toString();
  const end = () => eventually("the end of the body", () => requests.at(-1)?.readableEnded === true);

  it("in chunks of one byte arrives in few parts, and as it was sent", async () => {
    const text = Array.from({ length: 30_000 }, (_, at) => String.fromCharCode(97 + (at % 26))).join("");
    client.write(HEAD + [...text].map(chunk).join("") + chunk(""));
    await end();
    expect(body()).toBe(text);
    expect(parts.length).toBeLessThan(100);
  });

  it("in small and large chunks keeps its order", async () => {
    const texts = ["a", "b".repeat(4_095), "c".repeat(5_000), "d", "e", "f".repeat(100_000), "g"];
    client.write(HEAD + texts.map(chunk).join("") + chunk(""));
    await end();
    expect(body()).toBe(texts.join(""));
  });

  it("arrives as soon as a part of it was sent", async () => {
    client.write(HEAD + chunk("a") + chunk("b"));
    await eventually("the first part", () => body() === "ab");
    client.write(chunk("c"));
    await eventually("the second part", () => body() === "abc");
    expect(requests[0]!.complete).toBe(false);
  });

  it("that nobody reads takes little memory, and stays with the system", async () => {
    isRead = false;
    client.write(HEAD + chunk("a").repeat(200_000) + chunk(""));
    await eventually("the request", () => requests.length === 1);
    await eventually("a pause", () => requests[0]!.socket.isPaused());
    expect(requests[0]!.socket.bytesRead).toBeLessThan(700_000);
    read(requests[0]!);
    // The buffer that the request keeps, and what is read at once.
    expect(requests[0]!.readableLength).toBeLessThan(150_000);
    await end();
    expect(body()).toBe("a".repeat(200_000));
    expect(parts.length).toBeLessThan(1_000);
  });

  it("of a client that leaves in the middle ends with an error, and nothing else", async () => {
    let error: Error | undefined;
    client.write(HEAD + chunk("a"));
    await eventually("the request", () => requests.length === 1);
    requests[0]!.on("error", (thrown) => (error = thrown));
    client.write(chunk("b"));
    client.resetAndDestroy();
    await eventually("its end", () => error !== undefined);
    expect(requests[0]!.destroyed).toBe(true);
  });

  it("of each pipelined request is its own", async () => {
    const post = (text: string) =>
      `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
    client.write(post("one") + post("") + post("two"));
    await eventually("the requests", () => requests.length === 3);
    await end();
    expect(parts.map(String)).toEqual(["one", "two"]);
  });
});
