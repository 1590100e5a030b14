/** Stores that answer a range with other bytes: no line is read twice, and none is left out. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AzureStore } from "../../src/object-store/azure-store.ts";
import { GcsStore } from "../../src/object-store/gcs-store.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { S3Store } from "../../src/object-store/s3-store.ts";

const OBJECT = Buffer.from(Array.from({ length: 1000 }, (_, i) => String(i).padStart(9, "0")).join("\n"));
const GENERATION = JSON.stringify({ generation: "1", size: String(OBJECT.length) });

describe.each(["s3", "gs", "az"])("%s", (scheme) => {
  let answer: (start: number, end: number) => { range: string | undefined; body: Buffer };
  let store: ObjectStore;
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
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
    return response.writeHead(range === undefined ? 200 : 206, head).end(body);
  });
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    Object.assign(process.env, {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
      AWS_REGION: "us-east-1",
    });
    const none = { account: undefined, key: undefined, sasToken: undefined };
    const connectionString = `DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=${endpoint}/a`;
    if (scheme === "s3") store = new S3Store({ endpoint });
    else if (scheme === "gs") store = new GcsStore({ emulator: endpoint });
    else store = new AzureStore({ connectionString, ...none });
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const range = (start: number, end: number) => ({
    range: `bytes ${start}-${end - 1}/${OBJECT.length}`,
    body: OBJECT.subarray(start, end),
  });

  /** All that comes from `start` on, by reads of 4,000 bytes, as enqueuing (without etag) and the reading of batches do. */
  async function read(start: number, etag?: string): Promise<string> {
    const object = await store.open(`${scheme}://bucket/key`, etag);
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

  it("is read where it gives what was asked for", async () => {
    answer = range;
    expect(await read(0)).toBe(OBJECT.toString());
    expect(await read(3500, etag)).toBe(OBJECT.subarray(3500).toString());
  });

  it("may send the whole object from its beginning", async () => {
    answer = () => ({ range: undefined, body: OBJECT.subarray(0, 4000) });
    const object = await store.open(`${scheme}://bucket/key`, etag);
    const into = Buffer.alloc(100);
    expect(await object.read(into, 0, 0, 100)).toBe(100);
    await object.close();
    expect(into.toString()).toBe(OBJECT.subarray(0, 100).toString());
  });

  it.each<[string, typeof answer]>([
    ["the whole object", () => ({ range: undefined, body: OBJECT })],
    ["another range", (start, end) => ({ ...range(start, end), ...range(0, end - start) })],
    ["less than it says", (start, end) => ({ ...range(start, end), body: OBJECT.subarray(start, end - 10) })],
    ["less, and says so", (start, end) => range(start, end - 10)],
    ["a range that is none", (start, end) => ({ ...range(start, end), range: "bytes */*" })],
  ])("is not believed where it answers with %s", async (_, hostile) => {
    answer = (start, end) => (start === 0 ? range(start, end) : hostile(start, end));
    await expect(read(0)).rejects.toMatchObject({ code: "store_unreachable" });
    await expect(read(3500, etag)).rejects.toMatchObject({ code: "store_unreachable" });
  });
});
