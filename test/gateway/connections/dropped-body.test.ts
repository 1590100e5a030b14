/** The body of a request that was refused, through a real listener. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { discardRest } from "../../../src/gateway/answers/discard-rest.ts";
import type { CountedRequest } from "../../../src/gateway/connections/dropped-body.ts";
import { eventually } from "../../harness/eventually.ts";

const CHUNK = "1\r\na\r\n";
const chunked = (path: string, chunks: number) =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n${CHUNK.repeat(chunks)}0\r\n\r\n`;

describe("a body that is dropped", () => {
  let server: Server;
  let client: Socket;
  let received: string;
  /** Parts of bodies that Node has made, and how often a connection gave its turn to others. */
  let parts: number;
  let yields: number;
  beforeEach(async () => {
    [parts, yields, received] = [0, 0, ""];
    server = createServer((request: IncomingMessage, response) => {
      const { push } = request;
      request.push = function (...part: [unknown]) {
        parts++;
        return push.apply(this, part);
      };
      (request as CountedRequest).yieldTurn = () => yields++;
      if (request.url === "/refused") {
        response.writeHead(401).end("refused");
        return discardRest(request);
      }
      let body = "";
      request.on("data", (data) => (body += String(data)));
      request.on("end", () => response.end(`read ${body.length}`));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.on("data", (data) => (received += String(data)));
  });
  afterEach(async () => {
    client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const answers = () =>
    received
      .split("HTTP/1.1 ")
      .slice(1)
      .map((answer) => answer.slice(0, 3));

  it("makes no parts, and gives others their turn after each read", async () => {
    client.write(chunked("/refused", 100_000));
    await eventually("the body has ended", () => parts === 1);
    expect(yields).toBeGreaterThan(5);
    expect(answers()).toEqual(["401"]);
  });

  it("leaves the next request of the connection as it is, also in the same read", async () => {
    client.write(chunked("/refused", 10) + chunked("/read", 20) + chunked("/refused", 5));
    await eventually("all answers", () => answers().length === 3);
    client.write(chunked("/read", 30));
    await eventually("the last answer", () => received.includes("read 30"));
    expect(answers()).toEqual(["401", "200", "401", "200"]);
    expect(received).toContain("read 20");
  });

  it("leaves the parser as it was to the next connection that gets it", async () => {
    for (let each = 0; each < 20; each++) {
      const cut = connect((server.address() as AddressInfo).port, "127.0.0.1");
      cut.write(chunked("/refused", 10).slice(0, -5));
      await new Promise((resolve) => cut.once("data", resolve));
      cut.destroy();
    }
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/read`;
    const bodies = Array.from({ length: 20 }, async () => {
      const response = await fetch(url, { method: "POST", body: "12345" });
      return response.text();
    });
    expect(new Set(await Promise.all(bodies))).toEqual(new Set(["read 5"]));
  });
});
