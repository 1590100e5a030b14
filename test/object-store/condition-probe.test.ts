/** Whether a store honours conditions is found out by trying, on a store with the protocol of S3 that may ignore them. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ConditionProbe } from "../../src/object-store/condition-probe.ts";
import { type AnsweringStores, answeringStores } from "../harness/answering-stores.ts";

const objects = new Map<string, { content: Buffer; etag: string }>();
let requests: string[] = [];
/** The conditions that the store knows, and the methods that it denies. */
let known = { absent: true, etag: true };
let denied: string[] = [];
/** The store says that everything exists, and then that it does not. */
let isContradicting = false;
/** The number of successful writes whose response is lost. */
let lost = 0;

function answer(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const { method = "", url = "", headers } = request;
    requests.push(method);
    const key = new URL(url, "http://store").pathname;
    const found = objects.get(key);
    const refuse = (status: number, code: string) =>
      response.writeHead(status).end(`<Error><Code>${code}</Code><Message>no</Message></Error>`);
    if (denied.includes(method)) return refuse(403, "AccessDenied");
    if (isContradicting && method === "PUT") return refuse(412, "PreconditionFailed");
    if (method === "DELETE") {
      objects.delete(key);
      return response.writeHead(204).end();
    }
    if (method === "HEAD") return response.writeHead(found ? 200 : 404, { etag: found?.etag ?? "" }).end();
    if (known.absent && headers["if-none-match"] === "*" && found) return refuse(412, "PreconditionFailed");
    const match = headers["if-match"];
    if (known.etag && match !== undefined && match !== found?.etag) return refuse(412, "PreconditionFailed");
    const content = Buffer.concat(pieces);
    const etag = `"${createHash("md5").update(content).digest("hex")}"`;
    objects.set(key, { content, etag });
    return lost-- > 0 ? request.socket.destroy() : response.writeHead(200, { etag }).end();
  });
}

describe("the trial of conditional writes", () => {
  let stores: AnsweringStores;
  beforeAll(async () => {
    stores = await answeringStores(answer);
  });
  afterAll(() => stores.close());
  beforeEach(() => {
    [known, denied, lost, requests] = [{ absent: true, etag: true }, [], 0, []];
    isContradicting = false;
    objects.clear();
  });

  it.each([
    [true, true, true],
    [false, true, false],
    [true, false, false],
    [false, false, false],
  ])("of a store that knows `absent` (%s) and etags (%s) says %s", async (absent, etag, expected) => {
    known = { absent, etag };
    expect(await new ConditionProbe(stores.s3).hasConditions("s3://bucket/out/")).toBe(expected);
    expect(objects.size).toBe(0);
  });

  it("is done once for each bucket; later only one object is written and removed", async () => {
    const probe = new ConditionProbe(stores.s3);
    expect(await probe.hasConditions("s3://bucket/out/")).toBe(true);
    requests = [];
    expect(await probe.hasConditions("s3://bucket/other/")).toBe(true);
    expect(requests).toEqual(["PUT", "DELETE"]);
    known.etag = false;
    expect(await probe.hasConditions("s3://bucket-2/out/")).toBe(false);
    known.etag = true;
    expect(await probe.hasConditions("s3://bucket-2/out/")).toBe(true);
  });

  it("does not take its own object for another's when a response was lost", async () => {
    lost = 1;
    expect(await new ConditionProbe(stores.s3).hasConditions("s3://bucket/out/")).toBe(true);
    expect(objects.size).toBe(0);
  });

  it("says so if the store contradicts itself", async () => {
    isContradicting = true;
    await expect(new ConditionProbe(stores.s3).hasConditions("s3://bucket/out/")).rejects.toMatchObject({
      code: "store_unreachable",
      message: expect.stringContaining("because it exists, and then says that it does not"),
    });
  });

  it.each(["PUT", "DELETE"])("names the permissions if %s is denied", async (method) => {
    denied = [method];
    const probe = new ConditionProbe(stores.s3);
    for (let time = 0; time < 2; time++)
      await expect(probe.hasConditions("s3://bucket/out/")).rejects.toMatchObject({
        code: "store_forbidden",
        message: expect.stringMatching(/may not be written with .*s3:PutObject/),
      });
  });
});
