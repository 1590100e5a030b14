/**
 * Stores and queues that answer endlessly, or without a valid listing: a job waits or fails, and never takes part of
 * its input for all.
 */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DeadLetter } from "../../src/batch/letters/letters.ts";
import { Sqs } from "../../src/batch/letters/sqs.ts";
import { SQS_CLIENTS_MAX } from "../../src/contracts/limits/jobs.ts";
import { STORE_PIECE_BYTES } from "../../src/contracts/limits/stores.ts";
import { type AnsweringStores, answeringStores, type Scheme } from "../harness/answering-stores.ts";
import { leastLongestTurnMs } from "../harness/turns.ts";

const MiB = 1024 * 1024;

describe("a store that answers", () => {
  let answer: (response: ServerResponse) => void = () => {};
  let stores: AnsweringStores;
  beforeAll(async () => {
    stores = await answeringStores((_, response) => answer(response));
  });
  afterAll(() => stores.close());

  const all = async (scheme: Scheme, prefix = "") => {
    const paths: string[] = [];
    for await (const page of stores[scheme].list(`${scheme}://bucket/${prefix}`, { sizes: true }))
      paths.push(...page.map(({ path }) => path));
    return paths;
  };

  /** Sends as long as the client reads; returns the number of sent bytes. */
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

  it.each<[Scheme, number]>([
    ["s3", 200],
    ["s3", 404],
    ["s3", 500],
    ["gs", 200],
    ["gs", 500],
    ["az", 200],
    ["az", 403],
    ["az", 500],
  ])("%s with %s and an endless body is cut off", async (scheme, status) => {
    const sent = endless(status);
    await expect(all(scheme)).rejects.toMatchObject({
      code: "store_unreachable",
      message: expect.stringContaining("longer than"),
    });
    // The bytes that were read, and those in socket buffers.
    expect(sent.bytes).toBeLessThan(sent.connections * 40 * MiB);
  });

  it.each([200, 400])("SQS with %i and an endless body is cut off", async (status) => {
    const sent = endless(status);
    const sqs = new Sqs();
    const letter = { body: Buffer.from("[1]"), attributes_json: '{"error":"no"}' } as unknown as DeadLetter;
    await expect(sqs.send("arn:aws:sqs:us-east-1:000000000000:letters", [letter])).rejects.toThrow(
      "longer than",
    );
    expect(sent.bytes).toBeLessThan(sent.connections * 40 * MiB);
  });

  it("SQS in many regions is asked with few clients in memory", async () => {
    answer = (response) => response.writeHead(400).end('{"__type":"Other"}');
    const sqs = new Sqs();
    for (let i = 0; i < 4 * SQS_CLIENTS_MAX; i++) {
      const [region, account, name] = [`us-east-${i}`, "000000000000", "letters"];
      const arn = `arn:aws:sqs:${region}:${account}:${name}`;
      expect(await sqs.isMissing({ kind: "sqs", arn, region, account, name })).toBe(false);
    }
    const { clients } = sqs as unknown as { clients: { size: number } };
    expect(clients.size).toBe(SQS_CLIENTS_MAX);
  });

  const listing = (body: string) => `<ListBucketResult>${body}</ListBucketResult>`;
  const entry = (key: string, size: string) => `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`;
  const enumeration = (blobs: string) => `<EnumerationResults><Blobs>${blobs}</Blobs></EnumerationResults>`;
  const blob = (name: string, size: string) =>
    `<Blob><Name>${name}</Name><Properties><Content-Length>${size}</Content-Length></Properties></Blob>`;
  it.each<[Scheme, string]>([
    [
      "s3",
      listing(
        `<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>${entry("a", "1")}`,
      ),
    ],
    ["gs", '{"items":[{"name":"a","size":"1"}],"nextPageToken":"x"}'],
    ["az", enumeration(blob("a", "1")).replace("</Blobs>", "</Blobs><NextMarker>x</NextMarker>")],
  ])("%s ends by an error if its listing continues at the same place again", async (scheme, body) => {
    let pages = 0;
    answer = (response) => {
      pages++;
      response.end(body);
    };
    await expect(all(scheme)).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("so it would never end; check its software"),
    });
    expect(pages).toBe(2);
  });

  it.each<[Scheme, string]>([
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
    ["gs", '{"items":{"a":1}}'],
    ["gs", '{"items":[null]}'],
    ["gs", '{"items":[{"name":"a"}]}'],
    ["gs", '{"items":[{"name":"a","size":"-1"}]}'],
    ["gs", `{"items":[{"name":"${"k".repeat(100_000)}","size":"1"}]}`],
    ["gs", '{"items":[],"nextPageToken":{}}'],
    ["az", ""],
    ["az", "<html><body>Log in to this network</body></html>"],
    ["az", "{}"],
    ["az", `<EnumerationResults><Blobs>${blob("a", "1")}`],
    ["az", "<EnumerationResults></EnumerationResults>"],
    ["az", enumeration("<Blob><Name>a</Name></Blob>")],
    ["az", enumeration(blob("a", "much"))],
    ["az", enumeration(blob("a", ""))],
    ["az", enumeration(blob("&constructor;", "1"))],
    ["az", enumeration(blob("k".repeat(100_000), "1"))],
  ])("%s with %.60s is not taken for a listing", async (scheme, body) => {
    answer = (response) => response.end(body);
    const error = await all(scheme).catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "store_unreachable" });
    expect((error as Error).message.length).toBeLessThan(1000);
  });

  const body = Buffer.alloc(STORE_PIECE_BYTES + 1);
  /** Every way to write, each to its end. */
  const writes = (scheme: Scheme): (() => Promise<unknown>)[] => {
    const path = `${scheme}://bucket/out`;
    const upload = async (bytes: number) => {
      const writing = await stores[scheme].create(path);
      await writing.write(body.subarray(0, bytes));
      await writing.complete();
    };
    return [
      () => stores[scheme].put(path, Buffer.from("1")),
      () => stores[scheme].put(path, Buffer.from("1"), "absent"),
      () => upload(1),
      () => upload(body.length),
    ];
  };
  const remove = (scheme: Scheme) => () => stores[scheme].remove(`${scheme}://bucket/out`);
  const removeUnfinished = () => stores.s3.removeUnfinished("s3://bucket/out/");

  it.each<[Scheme, number]>([
    ["s3", 200],
    ["s3", 404],
    ["s3", 500],
    ["gs", 200],
    ["gs", 403],
    ["gs", 500],
    ["az", 201],
    ["az", 403],
    ["az", 500],
  ])("%s with %s and an endless body is cut off when it is written", async (scheme, status) => {
    const sent = endless(status);
    for (const write of writes(scheme))
      await expect(write()).rejects.toMatchObject({ code: "store_unreachable" });
    if (scheme === "s3") await expect(removeUnfinished()).rejects.toThrow("longer than");
    expect(sent.bytes).toBeLessThan(sent.connections * 40 * MiB);
  });

  it.each<[Scheme, number, Record<string, string>, string]>([
    ["s3", 200, {}, ""],
    ["s3", 200, {}, "<html><body>Log in to this network</body></html>"],
    ["s3", 200, {}, "<InitiateMultipartUploadResult></InitiateMultipartUploadResult>"],
    ["s3", 200, {}, "<Error><Code>InternalError</Code></Error>"],
    ["s3", 204, {}, ""],
    ["gs", 200, {}, ""],
    ["gs", 200, {}, "[]"],
    ["gs", 200, {}, '{"generation":"x","size":"1"}'],
    ["gs", 200, { location: "" }, "{}"],
    ["gs", 200, { location: "::" }, "{}"],
    ["gs", 200, { location: "/" }, "{}"],
    ["gs", 308, { location: "/upload?upload_id=1" }, ""],
    ["az", 200, {}, ""],
    ["az", 200, {}, "<html></html>"],
    ["az", 201, {}, ""],
  ])("%s with %i %j %.40s is not taken for a written object", async (scheme, status, headers, text) => {
    answer = (response) => response.writeHead(status, headers).end(text);
    for (const write of writes(scheme)) {
      const error = await write().catch((caught: Error) => caught);
      expect((error as { code?: string }).code, (error as Error).message).toMatch(
        /^store_(unreachable|forbidden)$/,
      );
      expect((error as Error).message.length).toBeLessThan(1000);
    }
  });

  it.each(["", "bytes=0-5", "bytes=0-99999999999999", "bytes=7-9", "nothing"])(
    "gs that has received %j of each piece does not keep an upload for ever",
    async (range) => {
      let requests = 0;
      answer = (response) => {
        requests++;
        const headers = range === "" ? {} : { range };
        response
          .writeHead(requests === 1 ? 200 : 308, { location: "/upload?upload_id=1", ...headers })
          .end("{}");
      };
      await expect(writes("gs")[3]!()).rejects.toThrow();
      expect(requests).toBeLessThan(6);
    },
  );

  it("gs with endless answers to pieces is cut off", async () => {
    let [requests, sent] = [0, 0];
    answer = (response) => {
      if (++requests === 1) return response.writeHead(200, { location: "/upload?upload_id=1" }).end("{}");
      response.writeHead(308);
      const more = () => {
        sent += MiB;
        if (!response.destroyed && response.write(Buffer.alloc(MiB))) setImmediate(more);
      };
      response.on("drain", more);
      more();
    };
    await expect(writes("gs")[3]!()).rejects.toThrow("longer than");
    expect(sent).toBeLessThan(requests * 40 * MiB);
  });

  it("that is silent is given up when it is written", async () => {
    answer = () => {};
    const schemes: Scheme[] = ["s3", "gs", "az"];
    const ends = schemes.flatMap((scheme) => [writes(scheme)[0]!, remove(scheme)]).map((write) => write());
    for (const end of await Promise.allSettled(ends))
      expect(end).toMatchObject({ status: "rejected", reason: { code: "store_unreachable" } });
  }, 120_000);

  it("s3 with a listing of uploads that never ends, or names others, is left", async () => {
    const page = (key: string) =>
      `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>out/1</NextKeyMarker>` +
      `<Upload><Key>${key}</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>`;
    for (const key of ["out/1", "other"]) {
      let [requests, aborted] = [0, 0];
      answer = (response) => {
        requests++;
        if (response.req.method === "DELETE") aborted++;
        response.end(response.req.method === "GET" ? page(key) : "");
      };
      await expect(removeUnfinished()).rejects.toThrow("does not continue after the page before");
      expect(requests).toBeLessThan(6);
      expect(aborted).toBe(key === "other" ? 0 : 2);
    }
  });

  it("s3 without the length of an object gives it whole", async () => {
    answer = (response) => {
      const head = { etag: '"1"', "content-range": "bytes 0-4/5" };
      if (response.req.method === "HEAD") response.writeHead(200, { etag: '"1"' }).end();
      else response.writeHead(206, head).end("hello");
    };
    const object = await stores.s3.open("s3://bucket/a");
    const [first, then] = [Buffer.alloc(9), Buffer.alloc(9)];
    expect(await object.read(first, 0, 0, 9)).toBe(5);
    expect(await object.read(then, 0, 5, 9).catch(() => 0)).toBe(0);
    expect(first.subarray(0, 5).toString()).toBe("hello");
    await object.close();
  });

  it("an empty listing has no entries", async () => {
    answer = (response) => response.end(listing("<KeyCount>0</KeyCount>"));
    expect(await all("s3")).toEqual([]);
    answer = (response) => response.end("{}");
    expect(await all("gs")).toEqual([]);
    answer = (response) => response.end(enumeration(""));
    expect(await all("az")).toEqual([]);
  });

  it.each<[Scheme, string]>([
    ["s3", listing(entry("in/a", "1") + entry("in/../../etc/passwd", "1") + entry("../../etc/passwd", "1"))],
    ["gs", '{"items":[{"name":"in/a","size":"1"},{"name":"other/x","size":"1"}]}'],
    ["az", enumeration(blob("in/a", "1") + blob("inn", "1"))],
  ])("%s that lists what does not begin as was asked is refused", async (scheme, body) => {
    answer = (response) => response.end(body);
    await expect(all(scheme, "in/")).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(`which does not begin as ${scheme}://bucket/in/ does`),
    });
  });

  it("az with unusual names has these names", async () => {
    const names = ["a&amp;b", "&#x1F600;", "a/../b", "..", "__proto__"].map((name) => blob(name, "1"));
    const encoded = blob("c%20%ef%bf%bf", "1").replace("<Name>", '<Name Encoded="true">');
    answer = (response) => response.end(`\ufeff${enumeration([...names, encoded].join(""))}`);
    expect(await all("az")).toEqual(
      ["a&b", "😀", "a/../b", "..", "__proto__", "c \uffff"].map((name) => `az://bucket/${name}`),
    );
  });

  const [ENTITIES, SLASHES] = ["&#1;".repeat(4 * MiB - 200), "/".repeat(16 * MiB - 500)];
  const tokenPage = (token: string) => listing(`<NextContinuationToken>${token}</NextContinuationToken>`);
  const marker = (token: string) =>
    `<EnumerationResults><Blobs /><NextMarker>${token}</NextMarker></EnumerationResults>`;
  it.each<[Scheme, string, string]>([
    ["s3", "a key of references", listing(entry(ENTITIES, "1"))],
    ["s3", "a token of references", tokenPage(ENTITIES)],
    ["s3", "a token of slashes", tokenPage(SLASHES)],
    ["s3", "a size of digits", listing(entry("k", "1".repeat(16 * MiB - 500)))],
    ["s3", "many entries", listing(entry("k", "1").repeat(300_000))],
    ["az", "a key of references", enumeration(blob(ENTITIES, "1"))],
    ["az", "a token of references", marker(ENTITIES)],
    ["az", "many entries", enumeration(blob("k", "1").repeat(200_000))],
    ["gs", "a token of slashes", `{"nextPageToken":"${SLASHES.slice(8 * MiB)}"}`],
    ["gs", "a token of escapes", `{"nextPageToken":"${"\\u0001".repeat(1 * MiB)}"}`],
  ])("%s with %s in a page of megabytes takes no long turn", async (scheme, _, body) => {
    const bytes = Buffer.from(body);
    answer = (response) => response.end(bytes);
    const longest = await leastLongestTurnMs(300, async () => {
      await expect(all(scheme)).rejects.toMatchObject({ code: "store_unreachable" });
    });
    // They took 0.2 to 2.5 s, and now some 50 ms. The store of this test sends the page in one of the turns.
    expect(longest).toBeLessThan(300);
  });

  it.each<[Scheme, string]>([
    ["s3", "<a>".repeat(80_000)],
    ["s3", `<Error>${"<Code>x</Code>".repeat(18_000)}</Error>`],
    ["az", `<Error>${"<Code>x</Code>".repeat(18_000)}</Error>`],
  ])("%s with a long error of %.20s counts by its status alone", async (scheme, body) => {
    answer = (response) => response.writeHead(403, { "content-type": "application/xml" }).end(body);
    await expect(all(scheme)).rejects.toMatchObject({
      code: "store_forbidden",
      message: expect.not.stringMatching(/x,x|Maximum call stack/),
    });
  });

  it.each<[Scheme, string]>([
    ["gs", `{${'"a":1,'.repeat(2_000_000)}"b":1}`],
    ["gs", `{"items":${"[".repeat(3_000_000)}${"]".repeat(3_000_000)}}`],
    ["az", enumeration(blob("k".repeat(12_000_000), "1"))],
    ["az", `<EnumerationResults ${'a="1" '.repeat(2_000_000)}/>`],
    ["az", `<EnumerationResults>${"<a>".repeat(4_000_000)}`],
  ])("%s with %.40s… is read without delay", async (scheme, body) => {
    answer = (response) => response.end(body);
    const before = process.cpuUsage();
    await expect(all(scheme)).rejects.toMatchObject({ code: "store_unreachable" });
    const { user, system } = process.cpuUsage(before);
    // The parsers of the SDKs took ten seconds and more. The limit is generous because the machine may be busy.
    expect((user + system) / 1e6).toBeLessThan(5);
  });
});
