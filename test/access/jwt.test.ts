/**
 * A token that names an unusable key is refused like any other bad token: neither the server nor the issuer has failed.
 */
import { createSign, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { JwtVerifier } from "../../src/access/jwt.ts";

const directory = mkdtempSync(join(tmpdir(), "quern-test-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("refuses a token that is signed with a key that is too short", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const jwks = join(directory, "jwks.json");
  const key = { ...publicKey.export({ format: "jwk" }), kid: "short", alg: "RS256", use: "sig" };
  writeFileSync(jwks, JSON.stringify({ keys: [key] }));
  const options = { issuer: "https://issuer.example", audience: "quern", jwks, scopesClaim: "scope" };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: options.issuer, aud: options.audience, exp: 4e9, scope: "admin" };
  const signed = `${part({ alg: "RS256", kid: "short" })}.${part(claims)}`;
  const signature = createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url");
  await expect(new JwtVerifier(options).verify(`${signed}.${signature}`)).rejects.toMatchObject({
    code: "unauthorized",
    message: "the token is not valid: the key that the token names cannot be used",
  });
});
