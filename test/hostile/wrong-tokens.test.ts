/** Callers with a token or a signature that is wrong, where these are accepted: they learn no more than those without a key. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signedHeaders } from "../harness/aws-signature.ts";
import { ECHO } from "../harness/projects.ts";
import { type Asked, seenAnswer } from "../harness/seen-answer.ts";
import { TestServer } from "../harness/server.ts";

const ISSUER = "https://issuer.example";
const server = new TestServer();
let forged = "";
let good = "";

beforeAll(async () => {
  const [own, other] = [await generateKeyPair("ES256"), await generateKeyPair("ES256")];
  const sign = (key: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"]) =>
    new SignJWT({ scope: "predict" })
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(ISSUER)
      .setAudience("quern")
      .setExpirationTime("10m")
      .sign(key);
  [good, forged] = [await sign(own.privateKey), await sign(other.privateKey)];
  const [jwks, credentials] = [join(server.dir, "jwks.json"), join(server.dir, "credentials")];
  const key = { ...(await exportJWK(own.publicKey)), kid: "one", alg: "ES256", use: "sig" };
  writeFileSync(jwks, JSON.stringify({ keys: [key] }));
  writeFileSync(
    credentials,
    "[ada]\naws_access_key_id = AKIDADA\naws_secret_access_key = s3cret\nquern_scope = predict\n",
  );
  await server.start({}, [
    ...["--jwt-issuer", ISSUER, "--jwt-audience", "quern", "--jwt-jwks", jwks],
    ...["--sigv4-credentials", credentials],
  ]);
  server.deploy({
    "quern.yaml": `
- {name: echo, predictor: {path: predictor.py}}
- {name: inner, predictor: {path: predictor.py}, networking: {api_gateway: none}}
- {name: jobs, kind: BatchAPI, predictor: {path: predictor.py}}
`,
    "predictor.py": ECHO,
  });
});
afterAll(() => server.stop());

describe("a caller with a wrong token or signature", () => {
  const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const signed = (accessKeyId: string) =>
    signedHeaders({
      ...{ accessKeyId, secret: "guessed", path: "/", signedHeaders: ["host", "x-amz-content-sha256"] },
      headers: { host: new URL(server.baseUrl).host, "x-amz-content-sha256": hash },
    });
  const presented: [string, () => Record<string, string>][] = [
    ["no token", () => ({ authorization: "Bearer a.b.c" })],
    ["no token as a key", () => ({ "x-api-key": "a.b.c" })],
    ["a token of another's", () => ({ authorization: `Bearer ${forged}` })],
    ["no signature", () => ({ authorization: "AWS4-HMAC-SHA256 x" })],
    ["the signature of an unknown key", () => signed("AKIDEVE")],
    ["a signature with a guessed secret", () => signed("AKIDADA")],
  ];
  const json = { "content-type": "application/json" };
  const origin = { origin: "https://page.example" };
  const ways: [string, Asked][] = [
    ["GET", {}],
    ["GET of another page", { headers: origin }],
    ["POST", { method: "POST", headers: json, body: "{}" }],
    ["POST of another page", { method: "POST", headers: { ...json, ...origin }, body: "{}" }],
    ["PUT", { method: "PUT", headers: json, body: "{}" }],
    ["OPTIONS", { method: "OPTIONS" }],
    ["a preflight", { method: "OPTIONS", headers: { ...origin, "access-control-request-method": "POST" } }],
  ];

  it.each(presented)("is told the same of every name: %s", async (_, credentials) => {
    for (const [way, asked] of ways) {
      const all = { ...asked, headers: { ...asked.headers, ...credentials() } };
      const nothing = await seenAnswer(`${server.baseUrl}/nope`, all);
      expect([way, nothing]).toEqual([
        way,
        expect.objectContaining({ status: asked.method === "OPTIONS" ? 204 : 401 }),
      ]);
      for (const path of ["/echo", "/inner", "/jobs", "/jobs/x", "/nope/x"])
        expect([way, path, await seenAnswer(server.baseUrl + path, all)]).toEqual([way, path, nothing]);
    }
  });

  it("is not one with a good token, who is told what there is not", async () => {
    const statuses = async (method: string) =>
      Promise.all(
        ["/echo", "/nope", "/jobs"].map(async (path) => {
          const headers = { ...json, authorization: `Bearer ${good}` };
          const body = method === "POST" ? "{}" : null;
          return (await server.fetch(path, { method, headers, body })).status;
        }),
      );
    expect(await statuses("POST")).toEqual([200, 404, 403]);
    expect(await statuses("GET")).toEqual([200, 404, 403]);
  });
});
