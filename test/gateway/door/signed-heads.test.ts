/** How often the signature of one request is verified, although several places ask for it. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { BodyHash } from "../../../src/access/sigv4.ts";
import type { Authorization } from "../../../src/gateway/door/authorization.ts";
import { authorizationOf, signedHeaders } from "../../harness/aws-signature.ts";

vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof import("node:crypto")>();
  return { ...crypto, createHmac: vi.fn(crypto.createHmac) };
});

const SIGNER = { id: "aws:AKID", permissions: [], rate: null };
/** Four for the key of the scope, and one for the request. */
const HMACS = 5;

describe("a signature", () => {
  let authorization: Authorization;

  beforeEach(() => {
    authorization = authorizationOf(SIGNER);
  });

  function sign(body: string, hash: string | undefined, secret = "s3cret"): IncomingMessage {
    const given = { host: "localhost", ...(hash === undefined ? {} : { "x-amz-content-sha256": hash }) };
    const what = { accessKeyId: "AKID", secret, path: "/api", headers: given, signedHeaders: ["host"], body };
    const headers = signedHeaders(what);
    vi.mocked(createHmac).mockClear();
    return { method: "POST", url: "/api", headers } as unknown as IncomingMessage;
  }
  /** All places that ask for the signature of one request. */
  function pass(request: IncomingMessage, body: string): void {
    const fault = authorization.presentedFault(request);
    if (fault !== undefined) expect(() => authorization.assertSignedHead(request)).toThrow(fault as Error);
    else authorization.assertSignedHead(request);
    const hash = new BodyHash(request.headers);
    hash.add(Buffer.from(body));
    authorization.signer(request, hash, "prediction");
  }
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const verified = () => vi.mocked(createHmac).mock.calls.length / HMACS;

  it.each([
    ["with the hash of the body in the head", sha256("body")],
    ["without it", undefined],
  ])("%s is verified once, and the request passes", (_, hash) => {
    pass(sign("body", hash), "body");
    expect(verified()).toBe(1);
  });

  it("that is wrong is verified once, and refused each time", () => {
    expect(() => pass(sign("body", sha256("body"), "wrong"), "body")).toThrow("does not match");
    expect(verified()).toBe(1);
  });

  it("is not valid for a body of another hash", () => {
    expect(() => pass(sign("body", sha256("body")), "other")).toThrow("the body does not have the hash");
    expect(() => pass(sign("body", undefined), "other")).toThrow("does not match");
  });

  it("of one request does not admit another one", () => {
    pass(sign("body", sha256("body")), "body");
    expect(() => pass(sign("body", sha256("body"), "wrong"), "body")).toThrow("does not match");
  });
});
