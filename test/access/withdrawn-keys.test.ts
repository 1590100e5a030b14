/** A token that was accepted once: for how long it still is after its issuer has withdrawn the key that signed it. */
import type { JWK } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { PublishedKeys } from "../../src/access/issuer/keys.ts";
import { JwtVerifier } from "../../src/access/jwt.ts";
import { type Kid, TestIssuer } from "../harness/issuer.ts";

const MINUTE_MS = 60_000;
/** For this long after a fetch, a key that is not among the fetched ones causes no other fetch. */
const JUST_FETCHED_MS = 30_000;
const issuer = new TestIssuer();
const { tokens } = issuer;
let verifier: JwtVerifier;

beforeAll(() => issuer.start());
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  issuer.published = ["one"];
  issuer.asked = 0;
  verifier = new JwtVerifier(issuer.options);
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
  issuer.published = ["two"];
  vi.advanceTimersByTime(4 * MINUTE_MS + 1);
  expect(isKnown("one")).toBe(false);
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject({ code: "unauthorized" });
  expect(isKnown("one")).toBe(false);
});

it("all tokens are forgotten as soon as a fetch shows that a key is gone, and none if one is added", async () => {
  await verifier.verify(tokens.one);
  vi.advanceTimersByTime(JUST_FETCHED_MS);
  issuer.published = ["one", "two"];
  await verifier.verify(tokens.two);
  expect([isKnown("one"), isKnown("two"), issuer.asked]).toEqual([true, true, 2]);
  vi.advanceTimersByTime(JUST_FETCHED_MS);
  issuer.published = ["two", "three"];
  await verifier.verify(tokens.three);
  expect([isKnown("one"), isKnown("two"), issuer.asked]).toEqual([false, false, 3]);
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
  expect(issuer.asked).toBe(4);
  issuer.published = ["two"];
  let minutes = 0;
  for (; isKnown("one"); minutes++) {
    await verified();
    vi.advanceTimersByTime(MINUTE_MS);
  }
  expect(minutes).toBeLessThanOrEqual(6);
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
