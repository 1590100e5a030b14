/** Stores that answer a range with other bytes: no line is read twice, and none is left out. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AnsweringStores, answeringStores } from "../harness/answering-stores.ts";

const OBJECT = Buffer.from(Array.from({ length: 1000 }, (_, i) => String(i).padStart(9, "0")).join("\n"));
const PIECE = 1_500;
const GENERATION = JSON.stringify({ generation: "1", size: String(OBJECT.length) });

describe.each(["s3", "gs", "az"] as const)("%s", (scheme) => {
  let answer: (start: number, end: number) => { range: string | undefined; body: Buffer };
  let stores: AnsweringStores;
  const take = (request: IncomingMessage, response: ServerResponse) => {
    const headers = { etag: '"e"', "content-type": "application/octet-stream" };
    if (request.url!.includes("fields=generation")) return response.end(GENERATION);
    if (request.method === "HEAD")
      return response.writeHead(200, { ...headers, "content-length": OBJECT.length }).end();
    const asked = request.headers.range ?? request.headers["x-ms-range"];
    const [, start, last] = /^bytes=(\d+)-(\d+)$/.exec(String(asked))!;
    const { range, body } = answer(Number(start), Math.min(Number(last) + 1, OBJECT.length));
    const head = {
      ...headers,
      "content-length": body.length,
      ...(range === undefined ? {} : { "content-range": range }),
    };
    response.writeHead(range === undefined ? 200 : 206, head).write(body.subarray(0, PIECE));
    // Separately, so that a read ends there.
    return setTimeout(() => response.end(body.subarray(PIECE)), 5);
  };
  beforeAll(async () => {
    stores = await answeringStores(take);
  });
  afterAll(() => stores.close());

  const range = (start: number, end: number) => ({
    range: `bytes ${start}-${end - 1}/${OBJECT.length}`,
    body: OBJECT.subarray(start, end),
  });

  /** All that comes from `start` on, by reads of 4,000 bytes, as enqueuing (without etag) and the reading of batches do. */
  async function read(start: number, etag?: string): Promise<string> {
    const object = await stores[scheme].open(`${scheme}://bucket/key`, etag);
    const pieces: Buffer[] = [];
    for (let at = start; ; at += pieces.at(-1)!.length) {
      const into = Buffer.alloc(4000);
      const bytes = await object.read(into, 0, at, into.length);
      if (bytes === 0) break;
      pieces.push(into.subarray(0, bytes));
    }
    await object.close();
    return Buffer.concat(pieces).toString();
  }
  const etag = scheme === "gs" ? "1" : '"e"';

  it("is read if it returns the requested range", async () => {
    answer = range;
    expect(await read(0)).toBe(OBJECT.toString());
    expect(await read(3500, etag)).toBe(OBJECT.subarray(3500).toString());
  });

  it("may return more than was requested: the rest is requested again", async () => {
    answer = (start, end) => range(start, Math.min(end + 100, OBJECT.length));
    expect(await read(0)).toBe(OBJECT.toString());
    expect(await read(3500, etag)).toBe(OBJECT.subarray(3500).toString());
  });

  it("may send the whole object from its beginning", async () => {
    answer = () => ({ range: undefined, body: OBJECT.subarray(0, 4000) });
    const object = await stores[scheme].open(`${scheme}://bucket/key`, etag);
    const into = Buffer.alloc(100);
    expect(await object.read(into, 0, 0, 100)).toBe(100);
    await object.close();
    expect(into.toString()).toBe(OBJECT.subarray(0, 100).toString());
  });

  it.each<[string, typeof answer]>([
    ["the whole object", () => ({ range: undefined, body: OBJECT })],
    ["another range", (start, end) => ({ ...range(start, end), ...range(0, end - start) })],
    [
      "less than announced",
      (start, end) => ({ ...range(start, end), body: OBJECT.subarray(start, end - 10) }),
    ],
    ["less, as announced", (start, end) => range(start, end - 10)],
    ["an invalid range", (start, end) => ({ ...range(start, end), range: "bytes */*" })],
  ])("is not trusted if it answers with %s", async (_, hostile) => {
    answer = (start, end) => (start === 0 ? range(start, end) : hostile(start, end));
    await expect(read(0)).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(read(3500, etag)).rejects.toMatchObject({ code: "store_unreachable" });
  });
});
