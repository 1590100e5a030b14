/** Responses that would keep the event loop busy for far longer than their bytes need. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { boundResponses } from "../../src/object-store/bound-responses.ts";
import { request } from "../../src/object-store/http-request.ts";
import { StoreBody } from "../../src/object-store/text-of-store.ts";

const HEAD = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const END = "0\r\n\r\n";
const chunksOf = (text: string, count: number) => `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count);
const ANSWERS: Record<string, string> = {
  "/crumbs": HEAD + chunksOf("x", 100_000) + END,
  "/late-crumbs": HEAD + chunksOf("x".repeat(4_000), 1_000) + chunksOf("x", 100_000) + END,
  "/few": HEAD + chunksOf("x", 900) + END,
  "/small": HEAD + chunksOf("x".repeat(40), 20_000) + END,
  "/hints": "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000) + HEAD + END,
  "/one-hint": `HTTP/1.1 103 Early Hints\r\n\r\n${HEAD}${END}`,
};

const sockets = new Set<Socket>();
let server: Server;
let url = "";
beforeAll(async () => {
  boundResponses();
  server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.on("data", (head) => socket.write(ANSWERS[/ (\S+)/.exec(head.toString())![1]!]!));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

async function read(path: string): Promise<number> {
  const answer = await request(url + path, { headers: {}, signal: AbortSignal.timeout(10_000) });
  const body = new StoreBody(answer);
  await body.readTo(16 * 1024 * 1024);
  return body.take().length;
}

describe("a response", () => {
  it("in many pieces of one byte is ended after a thousand of them", async () => {
    await expect(read("/crumbs")).rejects.toThrow("the server sent only 1000 bytes in 1000 pieces");
    await expect(read("/late-crumbs")).rejects.toThrow("the server sent only 1000 bytes in 1000 pieces");
  });

  it("in a few small pieces, or in many that are not as small, is read", async () => {
    expect(await read("/few")).toBe(900);
    expect(await read("/small")).toBe(800_000);
  });

  it("that comes after very many interim ones is not waited for", async () => {
    await expect(read("/hints")).rejects.toThrow("the server sent more than 100 interim responses");
    expect(await read("/one-hint")).toBe(0);
  });
});
