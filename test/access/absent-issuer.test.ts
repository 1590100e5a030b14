/** An issuer that cannot be reached: the keys that it published last go on to verify, for at most an hour. */
import type { ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { JwtVerifier } from "../../src/access/jwt.ts";
import { type LogFields, processLog } from "../../src/base/log.ts";
import type { ServiceError } from "../../src/contracts/errors.ts";
import { type Kid, TestIssuer } from "../harness/issuer.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** After this time the keys are due to be fetched again, and a token to be verified again. */
const DUE_MS = 5 * MINUTE_MS;
const UNAVAILABLE = { code: "server_unavailable" };
const UNAUTHORIZED = { code: "unauthorized" };
const issuer = new TestIssuer();
const { tokens, unnamed } = issuer;
let verifier: JwtVerifier;
let logged: string[] = [];

beforeAll(() => issuer.start());
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  logged = [];
  vi.spyOn(processLog(), "warn").mockImplementation(({ event }: LogFields) => void logged.push(event));
  issuer.published = ["one"];
  verifier = new JwtVerifier(issuer.options);
  vi.spyOn(verifier, "verify");
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  issuer.answer = undefined;
  await issuer.close();
  await issuer.listen();
});
afterAll(() => issuer.close());

const isKnown = (kid: Kid) => verifier.known(tokens[kid]) !== undefined;
/** As a gateway does for each request. Waits for what is verified beside it. */
const use = async (kid: Kid): Promise<void> => {
  if (!isKnown(kid)) await verifier.verify(tokens[kid]);
  await Promise.allSettled(vi.mocked(verifier.verify).mock.results.map(({ value }) => value as unknown));
  await new Promise((resolve) => setImmediate(resolve));
};

describe("while its issuer", () => {
  it.each<[string, () => unknown]>([
    ["is not there", () => issuer.close()],
    ["answers 500", () => (issuer.published = undefined)],
    ["answers with a page", () => (issuer.answer = (response) => response.end("<html>"))],
    ["closes connections", () => (issuer.answer = (response) => response.destroy())],
  ])(
    "%s, a token stays accepted for an hour after the keys were fetched, and no longer",
    async (_, leave) => {
      await verifier.verify(tokens.one);
      await leave();
      for (let minute = 1; minute < 60; minute++) {
        vi.advanceTimersByTime(MINUTE_MS);
        await use("one");
      }
      vi.advanceTimersByTime(MINUTE_MS - 1);
      await use("one");
      expect(logged).toEqual(["issuer_unreachable"]);
      vi.advanceTimersByTime(1);
      expect(isKnown("one")).toBe(false);
      await expect(verifier.verify(tokens.one)).rejects.toMatchObject(UNAVAILABLE);
      expect(logged).toEqual(["issuer_unreachable"]);
    },
  );
});

it("a new token of a key that was published last is accepted while the issuer is away", async () => {
  issuer.published = ["one", "two"];
  await verifier.verify(tokens.one);
  await issuer.close();
  vi.advanceTimersByTime(59 * MINUTE_MS);
  await expect(verifier.verify(tokens.two)).resolves.toMatchObject({ id: "jwt:two" });
});

it("a token of another key gets 503 while the issuer is away, and is accepted once it is back", async () => {
  await verifier.verify(tokens.one);
  await issuer.close();
  vi.advanceTimersByTime(DUE_MS);
  for (const token of [tokens.two, unnamed.two])
    await expect(verifier.verify(token)).rejects.toMatchObject(UNAVAILABLE);
  issuer.published = ["one", "two"];
  await issuer.listen();
  vi.advanceTimersByTime(SECOND_MS);
  await expect(verifier.verify(tokens.two)).resolves.toMatchObject({ id: "jwt:two" });
  await expect(verifier.verify(tokens.three)).rejects.toMatchObject(UNAUTHORIZED);
  issuer.published = ["one"];
  vi.advanceTimersByTime(DUE_MS);
  await expect(verifier.verify(unnamed.two)).rejects.toMatchObject(UNAUTHORIZED);
});

it("a token with a wrong signature gets 401 while the issuer is away", async () => {
  await verifier.verify(tokens.one);
  await issuer.close();
  vi.advanceTimersByTime(DUE_MS);
  const forged = tokens.one.replace(/[^.]+$/, tokens.two.split(".")[2]!);
  await expect(verifier.verify(forged)).rejects.toMatchObject(UNAUTHORIZED);
});

it("a server whose issuer was never there gets no keys, and says so once", async () => {
  await issuer.close();
  for (let minute = 0; minute < 5; minute++) {
    await expect(verifier.verify(tokens.one)).rejects.toMatchObject(UNAVAILABLE);
    vi.advanceTimersByTime(MINUTE_MS);
  }
  expect(logged).toEqual(["issuer_unreachable"]);
  await issuer.listen();
  await verifier.verify(tokens.one);
  expect(logged).toEqual(["issuer_unreachable", "issuer_reached"]);
});

it("a key that was withdrawn meanwhile ends once the issuer is back", async () => {
  await verifier.verify(tokens.one);
  await issuer.close();
  vi.advanceTimersByTime(DUE_MS);
  await use("one");
  expect(isKnown("one")).toBe(true);
  issuer.published = ["two"];
  await issuer.listen();
  // The token is verified again within a minute, and asks the issuer.
  vi.advanceTimersByTime(MINUTE_MS);
  await use("one");
  await vi.waitFor(() => expect(logged).toEqual(["issuer_unreachable", "issuer_reached"]));
  expect(isKnown("one")).toBe(false);
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject(UNAUTHORIZED);
});

it("each absence of the issuer has two lines in the log", async () => {
  await verifier.verify(tokens.one);
  for (let absence = 0; absence < 2; absence++) {
    await issuer.close();
    for (let minute = 0; minute < 8; minute++) {
      vi.advanceTimersByTime(MINUTE_MS);
      await use("one");
    }
    await issuer.listen();
    vi.advanceTimersByTime(MINUTE_MS + 1);
    await verifier.verify(tokens.one);
    await vi.waitFor(() => expect(logged).toHaveLength(2 * absence + 2));
  }
  expect(logged).toEqual(["issuer_unreachable", "issuer_reached", "issuer_unreachable", "issuer_reached"]);
});

it("no token of a known key waits for an issuer that has just failed", { timeout: 30_000 }, async () => {
  await verifier.verify(tokens.one);
  issuer.published = undefined;
  vi.advanceTimersByTime(DUE_MS);
  await verifier.verify(tokens.one);
  // It is asked again after a second, and does not respond.
  const silent: ServerResponse[] = [];
  issuer.answer = (response) => void silent.push(response);
  vi.advanceTimersByTime(SECOND_MS);
  const other = verifier.verify(tokens.two).catch((error: ServiceError) => error.code);
  await vi.waitFor(() => expect(silent).toHaveLength(1));
  expect(await Promise.race([other, verifier.verify(tokens.one)])).toMatchObject({ id: "jwt:one" });
  silent[0]!.destroy();
  expect(await other).toBe("server_unavailable");
});

it("a new key is found after half a minute for a token that does not say which key it has", async () => {
  await verifier.verify(tokens.one);
  issuer.published = ["two"];
  await expect(verifier.verify(unnamed.two)).rejects.toMatchObject(UNAUTHORIZED);
  vi.advanceTimersByTime(MINUTE_MS / 2);
  await expect(verifier.verify(unnamed.two)).resolves.toMatchObject({ id: "jwt:two" });
});

it("two keys of one name are asked for again after half a minute", async () => {
  issuer.published = ["one", "one"];
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject(UNAUTHORIZED);
  issuer.published = ["one"];
  await expect(verifier.verify(tokens.one)).rejects.toMatchObject(UNAUTHORIZED);
  vi.advanceTimersByTime(MINUTE_MS / 2);
  await expect(verifier.verify(tokens.one)).resolves.toMatchObject({ id: "jwt:one" });
});
