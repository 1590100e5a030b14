/** The allowed headers of a signed request: one canonical form, and nothing ambiguous. */
import { describe, expect, it } from "vitest";
import { parseCredentials } from "../../src/access/sigv4.ts";
import { readSignedHead, type SigningScope } from "../../src/access/sigv4-header.ts";

const nowMs = Date.parse("2026-01-31T12:00:00Z");
const scope: SigningScope = { regions: [], services: ["execute-api"] };
const CREDENTIAL = "Credential=AKID/20260131/eu-west-1/execute-api/aws4_request";
const SIGNATURE = `Signature=${"0a".repeat(32)}`;
const headers = (authorization: string) => ({
  host: "localhost",
  "x-amz-date": "20260131T120000Z",
  "content-type": "application/json",
  authorization: `AWS4-HMAC-SHA256 ${authorization}`,
});
const read = (authorization: string, expected = scope) =>
  readSignedHead(headers(authorization), expected, nowMs);
const withNames = (names: string) => `${CREDENTIAL}, SignedHeaders=${names}, ${SIGNATURE}`;

describe("the head of a signed request", () => {
  it("is read in any order of its fields, with and without spaces", () => {
    expect(read(withNames("content-type;host;x-amz-date"))).toMatchObject({
      accessKeyId: "AKID",
      scope: "20260131/eu-west-1/execute-api/aws4_request",
      signedHeaders: ["content-type", "host", "x-amz-date"],
      dateMs: nowMs,
    });
    expect(read(`${SIGNATURE},SignedHeaders=host,${CREDENTIAL}`).signedHeaders).toEqual(["host"]);
  });

  it.each([
    ["a name that every object has", "constructor;host", "no such header"],
    ["another one", "__proto__;host", "no such header"],
    ["a header that was not sent", "host;x-absent", "no such header"],
    ["a name twice", "host;host", "sorted, each once"],
    ["names in disorder", "x-amz-date;host", "sorted"],
    ["a name in capitals", "Host", "lower case"],
    ["an empty name", "host;", "lower case"],
    ["a name with a colon", "host:x", "lower case"],
    ["nothing but another header", "content-type", "Host header must be signed"],
  ])("is refused with SignedHeaders of %s", (_, names, message) => {
    expect(() => read(withNames(names))).toThrow(message);
  });

  it.each([
    ["of chunks", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"],
    ["of chunks that are not signed", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"],
    ["in capitals", "0A".repeat(32)],
    ["that is too short", "0a"],
  ])("is refused with a hash of the body %s, and the error says what to send", (_, hash) => {
    const given = { ...headers(withNames("host")), "x-amz-content-sha256": hash };
    expect(() => readSignedHead(given, scope, nowMs)).toThrow(/whole body.*UNSIGNED-PAYLOAD, or absent/);
  });

  it.each(["0a".repeat(32), "UNSIGNED-PAYLOAD"])("is read with the hash %s", (hash) => {
    const given = { ...headers(withNames("host")), "x-amz-content-sha256": hash };
    expect(readSignedHead(given, scope, nowMs).accessKeyId).toBe("AKID");
  });

  it.each([
    ["no SignedHeaders", `${CREDENTIAL}, ${SIGNATURE}`],
    ["empty SignedHeaders", `${CREDENTIAL}, SignedHeaders=, ${SIGNATURE}`],
    ["two signatures", `${withNames("host")}, ${SIGNATURE}`],
    ["two credentials", `${CREDENTIAL}, ${withNames("host")}`],
    ["a field that is not known", `${withNames("host")}, XCredential=a`],
    ["a short signature", `${CREDENTIAL}, SignedHeaders=host, Signature=0a0a`],
    [
      "a signature that is not hexadecimal",
      `${CREDENTIAL}, SignedHeaders=host, Signature=${"zz".repeat(32)}`,
    ],
    ["a scope of five parts", withNames("host").replace("aws4_request", "aws4_request/more")],
    ["no access key", withNames("host").replace("AKID", "")],
    ["text after the date", withNames("host").replace("20260131", "20260131x")],
  ])("is refused with %s", (_, authorization) => {
    expect(() => read(authorization)).toThrow("signature is not valid");
  });

  it("is for the regions and services of the settings only", () => {
    const narrow = { regions: ["us-east-1", "eu-west-1"], services: ["execute-api"] };
    expect(read(withNames("host"), narrow).scope).toContain("eu-west-1");
    expect(() => read(withNames("host"), { ...narrow, regions: ["us-east-1"] })).toThrow(
      'for the region "eu-west-1", but this server accepts us-east-1 (`quern up --sigv4-region`)',
    );
    expect(() => read(withNames("host").replace("execute-api", "s3"))).toThrow('for the service "s3"');
    expect(() => read(withNames("host").replace("execute-api", "constructor"))).toThrow("service");
  });
});

describe("signing credentials", () => {
  const LINES = ["aws_access_key_id = AKID", "aws_secret_access_key = secret", "quern_scope = predict"];

  it("need all three lines, each with a value", () => {
    expect([...parseCredentials(`[ada]\n${LINES.join("\n")}`).keys()]).toEqual(["AKID"]);
    for (const line of LINES)
      for (const less of ["", line.replace(/=.*/, "="), line.replace(/=.*/, "=  ")])
        expect(() => parseCredentials(`[ada]\n${LINES.join("\n").replace(line, less)}`)).toThrow(
          "[ada] must have aws_access_key_id, aws_secret_access_key and quern_scope",
        );
  });
});
