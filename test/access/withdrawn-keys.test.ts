/** A token that was accepted once: for how long it still is after its issuer has withdrawn the key that signed it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { PublishedKeys } from "../../src/access/issuer-keys.ts";
import { JwtVerifier } from "../../src/access/jwt.ts";

const MINUTE_MS = 60_000;
/** For this long after a fetch, a key that is not among the fetched ones causes no other fetch. */
const JUST_FETCHED_MS = 30_000;
const ISSUER = "https://issuer.example";
const KIDS = ["one", "two", "three"] as const;
type Kid = (typeof KIDS)[number];

/** What the issuer publishes now; undefined while it is down. */
let published: readonly Kid[] | undefined = ["one"];
let asked = 0;
const publicKeys = {} as Record<Kid, JWK>;
const tokens = {} as Record<Kid, string>;
let verifier: JwtVerifier;

const issuer = createServer((_, response) => {
  asked++;
  if (published === undefined) response.writeHead(500).end();
  else response.end(JSON.stringify({ keys: published.map((kid) => publicKeys[kid]) }));
});

beforeAll(async () => {
  for (const kid of KIDS) {
    const pair = await generateKeyPair("ES256", { extractable: true });
    publicKeys[kid] = { ...(await exportJWK(pair.publicKey)), kid, alg: "ES256", use: "sig" };
    tokens[kid] = await new SignJWT({ scope: "admin" })
      .setProtectedHeader({ alg: "ES256", kid })
      .setIssuer(ISSUER)
      .setAudience("quern")
      .setSubject(kid)
      .setExpirationTime("8h")
      .sign(pair.privateKey);
  }
  await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve));
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  published = ["one"];
  asked = 0;
  const jwks = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
  verifier = new JwtVerifier({ issuer: ISSUER, audience: "quern", jwks, scopesClaim: "scope" });
  vi.spyOn(verifier, "verify");
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(() => issuer.close());

const isKnown = (kid: Kid) => verifier.known(tokens[kid]) !== undefined;
/** What is verified beside the requests has been verified. */
const verified = async () => {
  await Promise.allSettled(vi.mocked(verifier.verify).mock.results.map(({ value }) => value as unknown));
  await new Promise((resolve) => setImmediate(resolve));
};

it("a token is verified again after five minutes, and refused if its key is withdrawn", async () => {
  await verifier.verify(tokens.one);
  vi.advanceTimersByTime(MINUTE_MS - 1);
  expect(isKnown("one")).toBe(true);
  published = ["two"];
  vi.advanceTimersByTime(4 * MINUTE_MS + 1);
  expect(isKnown("one")).toBe(false);
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject({ code: "unauthorized" });
  expect(isKnown("one")).toBe(false);
});

it("all tokens are forgotten as soon as a fetch shows that a key is gone, and none if one is added", async () => {
  await verifier.verify(tokens.one);
  vi.advanceTimersByTime(JUST_FETCHED_MS);
  published = ["one", "two"];
  await verifier.verify(tokens.two);
  expect([isKnown("one"), isKnown("two"), asked]).toEqual([true, true, 2]);
  vi.advanceTimersByTime(JUST_FETCHED_MS);
  published = ["two", "three"];
  await verifier.verify(tokens.three);
  expect([isKnown("one"), isKnown("two"), asked]).toEqual([false, false, 3]);
  await verifier.verify(tokens.two);
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject({ code: "unauthorized" });
});

it("a token in use is verified again without a request that waits, and ends soon after its key", async () => {
  await verifier.verify(tokens.one);
  for (let minute = 1; minute < 20; minute++) {
    vi.advanceTimersByTime(MINUTE_MS);
    expect(isKnown("one")).toBe(true);
    await verified();
  }
  expect(asked).toBe(4);
  published = ["two"];
  let minutes = 0;
  for (; isKnown("one"); minutes++) {
    await verified();
    vi.advanceTimersByTime(MINUTE_MS);
  }
  expect(minutes).toBeLessThanOrEqual(6);
});

it("a token in use stays known for four minutes more while its issuer is down, and no longer", async () => {
  await verifier.verify(tokens.one);
  const use = async (minutes: number) => {
    for (; minutes > 0; minutes--) {
      vi.advanceTimersByTime(MINUTE_MS);
      expect(isKnown("one")).toBe(true);
      await verified();
    }
  };
  // In the next minute its keys would be fetched again.
  await use(4);
  published = undefined;
  await use(4);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(isKnown("one")).toBe(false);
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject({ code: "server_unavailable" });
});

it("a key counts as withdrawn if it is gone or differs, not if it is listed in another order", () => {
  const key = { kty: "EC", kid: "a", crv: "P-256", x: "x", y: "y" };
  const other = { kty: "RSA", kid: "b", n: "n", e: "AQAB" };
  const keys = new PublishedKeys();
  const isGone = (...now: JWK[]) => keys.replace({ keys: now as { kty: string }[] });
  expect(isGone(key, other)).toBe(false);
  expect(
    isGone(Object.fromEntries(Object.entries(other).reverse()), { ...key, x5t: "of a new certificate" }),
  ).toBe(false);
  expect(isGone({ ...key, x: "another" }, other)).toBe(true);
  expect(isGone(other)).toBe(true);
  expect(isGone(other)).toBe(false);
  expect(isGone()).toBe(true);
});
