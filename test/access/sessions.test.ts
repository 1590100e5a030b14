/** Sessions: how they are read from requests, whose they are, and which end. */
import { expect, it } from "vitest";
import {
  asKey,
  Sessions,
  type StoredSession,
  sessionText,
  sessionTexts,
  surplus,
  withoutSession,
} from "../../src/access/sessions.ts";
import type { StoredKey } from "../../src/contracts/keys.ts";
import { SESSIONS_MAX, SESSIONS_OF_A_KEY_MAX } from "../../src/contracts/limits/authorization.ts";

const TOKEN = "t".repeat(43);
const page = { "x-quern-dashboard": "1" };
const session = (at: number, key = "k", more: Partial<StoredSession> = {}): StoredSession => ({
  ...{ sha256: `${key}-${at}`, key_id: key, key_sha256: key, created_time: String(at).padStart(6, "0") },
  expires_time: "2026-01-02T00:00:00.000Z",
  ...more,
});

it.each([
  [`quern_session=${TOKEN}`, true],
  [`a=1; quern_session=${TOKEN}`, true],
  [`a=1;quern_session=${TOKEN};b=2`, true],
  [`quern_session=${TOKEN}x`, false],
  [`quern_session=${TOKEN.slice(1)}`, false],
  [`xquern_session=${TOKEN}`, false],
  [`a="x quern_session=${TOKEN}"`, false],
  [`quern_session=a.b.c`, false],
  ["", false],
])("the cookie %j has a session: %s", (cookie, isThere) => {
  expect(sessionText({ cookie, ...page })).toBe(isThere ? `session\n${TOKEN}` : undefined);
  expect(sessionText({ cookie })).toBe(undefined);
});

it("of several sessions the known one counts, wherever it is", () => {
  const [foreign, own] = ["f".repeat(43), "o".repeat(43)];
  for (const tokens of [
    [foreign, own],
    [own, foreign],
  ]) {
    const cookie = tokens.map((token) => `quern_session=${token}`).join("; ");
    expect(sessionText({ cookie, ...page }, (text) => text.endsWith(own))).toBe(`session\n${own}`);
    expect(sessionTexts({ cookie, ...page })).toEqual(tokens.map((token) => `session\n${token}`));
    expect(sessionTexts({ cookie })).toEqual([]);
  }
});

it.each([
  ["a=1; b=2", "a=1; b=2"],
  [`a=1; quern_session=${TOKEN}; b=2`, "a=1; b=2"],
  [`quern_session=${TOKEN}; b=2`, "b=2"],
  [`quern_session=${TOKEN}`, undefined],
  [`quern_session=${TOKEN};quern_session=x`, undefined],
  ["quern_session", undefined],
  ["my_quern_session=1", "my_quern_session=1"],
])("%j without sessions is %j", (cookie, rest) => {
  expect(withoutSession(cookie)).toBe(rest);
});

it("a session permits what its key permits, and ends with whichever ends first", () => {
  const key: StoredKey = {
    ...{ id: "k-1", name: "ada", sha256: "k", scope: "view", api: null, created_time: "" },
    ...{ rate: { requests: 1, seconds: 1 }, expires_time: null, revoked_time: null },
  };
  const expected = { ...key, id: "session-k-1", sha256: "k-1", session_of: "k-1", created_time: "000001" };
  const { expires_time } = session(1);
  expect(asKey(session(1), key)).toEqual({ ...expected, expires_time });
  const sooner = "2026-01-01T00:00:00.000Z";
  expect(asKey(session(1), { ...key, expires_time: sooner }).expires_time).toBe(sooner);
  const later = "2027-01-01T00:00:00.000Z";
  expect(asKey(session(1), { ...key, expires_time: later }).expires_time).toBe(expires_time);
});

it("before one more, the dead sessions and the oldest of the key end", () => {
  const mine = Array.from({ length: SESSIONS_OF_A_KEY_MAX }, (_, at) => session(at));
  const others = [session(0, "other"), session(1, "other")];
  const ended = surplus([...others, ...mine.reverse()], "k", ({ sha256 }) => sha256 !== "other-1");
  expect(ended.map(({ sha256 }) => sha256).sort()).toEqual(["k-0", "other-1"]);
  expect(surplus([...others, ...mine], "new", () => true)).toEqual([]);
});

it("before one more than all may be, the oldest of all ends", () => {
  const all = Array.from({ length: SESSIONS_MAX }, (_, at) => session(at, `k${at}`));
  expect(surplus(all, "new", () => true)).toEqual([all[0]]);
});

it("a session that cannot be removed from a full disk opens nothing all the same", async () => {
  const full = async () => {
    throw new Error("full");
  };
  const sessions = new Sessions({ all: async () => [session(1)], add: async () => {}, remove: full });
  await sessions.start();
  await expect(sessions.end(["k-1"])).rejects.toThrow("full");
  expect(sessions.find("k-1")).toBeUndefined();
});
