/** Stores and queues that repeat the credentials of a request in an error: the error is shown without them. */
import type { IncomingMessage } from "node:http";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DeadLetter } from "../../src/batch/letters/letters.ts";
import { Sqs } from "../../src/batch/letters/sqs.ts";
import { STORE_PIECE_BYTES } from "../../src/contracts/limits/stores.ts";
import { type AnsweringStores, answeringStores, type Scheme } from "../harness/answering-stores.ts";

const ID = "AKIDTESTTESTTEST2345";
const TOKEN = "session/token+of=the/server==";
const BEARER = "ya29.token-of-the-server";

describe("a store that repeats a request's credentials", () => {
  let stores: AnsweringStores;
  let status = 403;
  let told = (_: string) => "";
  const signatures = new Set<string>();
  beforeAll(async () => {
    stores = await answeringStores((request, response) => {
      const signed = String(request.headers.authorization);
      signatures.add(/(?:Signature=|:)(.+)$/.exec(signed)?.[1] ?? BEARER);
      response.writeHead(status, { "content-type": "application/xml" });
      response.end(request.method === "HEAD" ? "" : told(words(request)));
    });
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: ID, AWS_SESSION_TOKEN: TOKEN });
    const { client } = stores.gs as unknown as { client: { options: object; opened: unknown } };
    expect(client).toMatchObject({ options: {} });
    const origin = process.env.AWS_ENDPOINT_URL_S3;
    const headers = async () => ({ authorization: `Bearer ${BEARER}` });
    client.opened = Promise.resolve({ origin, identity: "a test", headers });
  });
  afterAll(() => stores.close());

  function words({ headers }: IncomingMessage): string {
    const { authorization } = headers;
    const alone = String(authorization).split(/[ ,=:]/);
    return `SignatureDoesNotMatch, bad ${authorization}, token ${headers["x-amz-security-token"]}, of ${alone.join(" and ")}`;
  }
  const xml = (text: string) =>
    `<Error><Code>SignatureDoesNotMatch</Code><Message>${text}</Message><AWSAccessKeyId>${ID}</AWSAccessKeyId>` +
    `<AuthenticationErrorDetail>Server used following string to sign: 'GET\n\nx-ms-date:Tue'.</AuthenticationErrorDetail>` +
    `<StringToSign>AWS4-HMAC-SHA256\n20261123/us-east-1</StringToSign><SignatureProvided>${[...signatures].at(-1)}</SignatureProvided></Error>`;
  const forms: Record<string, (text: string) => string> = {
    XML: xml,
    JSON: (text) => JSON.stringify({ error: { message: text } }),
    text: (text) => text,
  };

  function expectNothing(text: string) {
    const secrets = [ID, TOKEN, BEARER, "20261123/us-east-1", "x-ms-date", ...signatures];
    expect(
      secrets.filter((secret) => text.includes(secret) || text.includes(JSON.stringify(secret))),
    ).toEqual([]);
  }

  it.each<[Scheme, number, string]>([
    ["s3", 403, "XML"],
    ["s3", 500, "XML"],
    ["s3", 200, "text"],
    ["gs", 403, "JSON"],
    ["gs", 403, "text"],
    ["gs", 500, "JSON"],
    ["gs", 200, "text"],
    ["az", 403, "XML"],
    ["az", 500, "XML"],
    ["az", 200, "text"],
  ])("%s with %i and %s does not reveal them to callers or to the log", async (scheme, code, form) => {
    [status, told] = [code, forms[form]!];
    const listed = stores[scheme].list(`${scheme}://bucket/`, { sizes: true });
    expectHidden(await listed.next().catch((caught: Error) => caught));
  });

  it.each<[Scheme, number, string]>([
    ["s3", 403, "XML"],
    ["s3", 500, "XML"],
    ["gs", 403, "JSON"],
    ["gs", 403, "text"],
    ["gs", 500, "JSON"],
    ["gs", 200, "text"],
    ["az", 403, "XML"],
    ["az", 500, "XML"],
  ])("%s with %i and %s does not reveal them when it is written", async (scheme, code, form) => {
    [status, told] = [code, forms[form]!];
    const path = `${scheme}://bucket/out`;
    const caught = (error: Error) => error;
    expectHidden(await stores[scheme].put(path, Buffer.from("1")).catch(caught));
    if (code < 300) return;
    const upload = await stores[scheme].create(path);
    await upload.write(Buffer.alloc(STORE_PIECE_BYTES + 1));
    expectHidden(await upload.complete().catch(caught));
    expectHidden(await stores[scheme].remove(path).catch(caught));
  });

  function expectHidden(thrown: unknown) {
    const error = thrown as Error & { details: { cause: Error } };
    expect(error.message).toContain("SignatureDoesNotMatch");
    expectNothing(error.message);
    expectNothing(JSON.stringify(pino.stdSerializers.err(error.details.cause)));
    expectNothing(JSON.stringify(pino.stdSerializers.err(error)));
  }

  it("SQS does not reveal them either", async () => {
    status = 400;
    told = (text) => JSON.stringify({ __type: "AccessDenied", message: text });
    const letter = { body: Buffer.from("[1]"), attributes_json: '{"error":"no"}' } as unknown as DeadLetter;
    const { refused } = await new Sqs().send("arn:aws:sqs:us-east-1:000000000000:letters", [letter]);
    expect(refused[0]?.reason).toContain("SignatureDoesNotMatch");
    expectNothing(String(refused[0]?.reason));
  });
});
