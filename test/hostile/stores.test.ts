/** Stores and queues that answer without an end, or with what is no listing: a job waits or fails, and never takes a part of its input for all. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Letter } from "../../src/batch/letters.ts";
import { Sqs } from "../../src/batch/sqs.ts";
import { GcsStore } from "../../src/object-store/gcs-store.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { S3Store } from "../../src/object-store/s3-store.ts";

const MiB = 1024 * 1024;

describe("a store that answers", () => {
  let answer: (response: ServerResponse) => void = () => {};
  const server = createServer((_, response) => answer(response));
  const stores: Record<string, ObjectStore> = {};
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    Object.assign(process.env, {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ENDPOINT_URL_SQS: endpoint,
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
      AWS_REGION: "us-east-1",
    });
    Object.assign(stores, { s3: new S3Store({ endpoint }), gs: new GcsStore({ emulator: endpoint }) });
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const all = async (scheme: string) => {
    const paths: string[] = [];
    for await (const page of stores[scheme]!.list(`${scheme}://bucket/`, { sizes: true }))
      paths.push(...page.map(({ path }) => path));
    return paths;
  };

  /** Sends for as long as somebody takes it; the bytes that were taken. */
  function endless(status: number) {
    const sent = { bytes: 0, connections: 0 };
    answer = (response) => {
      response.writeHead(status, { "content-type": "application/xml" });
      const piece = Buffer.alloc(MiB, " ");
      sent.connections++;
      const more = () => {
        while (!response.destroyed && response.write(piece)) sent.bytes += MiB;
        sent.bytes += MiB;
      };
      response.on("drain", more);
      more();
    };
    return sent;
  }

  it.each([
    ["s3", 200],
    ["s3", 404],
    ["s3", 500],
    ["gs", 200],
    ["gs", 500],
  ])("%s with %s and a body without an end is given up after some of it", async (scheme, status) => {
    const sent = endless(status);
    await expect(all(scheme)).rejects.toMatchObject({
      code: "store_unreachable",
      message: expect.stringContaining("longer than"),
    });
    // Beside what is read, what sockets hold on their way.
    expect(sent.bytes).toBeLessThan(sent.connections * 40 * MiB);
  });

  it.each([200, 400])(
    "SQS with %i and a body without an end is given up after some of it",
    async (status) => {
      const sent = endless(status);
      const sqs = new Sqs();
      const letter = { body: Buffer.from("[1]"), attributes_json: '{"error":"no"}' } as unknown as Letter;
      await expect(sqs.send("arn:aws:sqs:us-east-1:000000000000:letters", [letter])).rejects.toThrow(
        "longer than",
      );
      expect(sent.bytes).toBeLessThan(sent.connections * 40 * MiB);
    },
  );

  const listing = (body: string) => `<ListBucketResult>${body}</ListBucketResult>`;
  const entry = (key: string, size: string) => `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`;
  it.each([
    ["s3", ""],
    ["s3", "<html><body>Log in to this network</body></html>"],
    ["s3", "{}"],
    ["s3", `<ListBucketResult>${entry("a", "1")}`],
    ["s3", listing(`<IsTruncated>true</IsTruncated>${entry("a", "1")}`)],
    ["s3", listing("<Contents><Size>1</Size></Contents>")],
    ["s3", listing(entry("a", "much"))],
    ["s3", listing(entry("a", "-1"))],
    ["s3", listing(entry("&constructor;", "1"))],
    ["s3", listing(entry("k".repeat(100_000), "1"))],
    ["gs", ""],
    ["gs", "<html></html>"],
    ["gs", "null"],
    ["gs", "[]"],
  ])("%s with %.60s does not pass for a listing", async (scheme, body) => {
    answer = (response) => response.end(body);
    const error = await all(scheme).catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "store_unreachable" });
    expect((error as Error).message.length).toBeLessThan(1000);
  });

  it("with nothing in it has nothing in it", async () => {
    answer = (response) => response.end(listing("<KeyCount>0</KeyCount>"));
    expect(await all("s3")).toEqual([]);
    answer = (response) => response.end("{}");
    expect(await all("gs")).toEqual([]);
  });
});
