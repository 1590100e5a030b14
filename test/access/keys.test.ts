/** Which keys the gateways get. */
import { expect, it } from "vitest";
import type { AdminKeys } from "../../src/access/admin-token.ts";
import { KeyUse } from "../../src/access/key-use.ts";
import { Keys } from "../../src/access/keys.ts";
import { Sessions } from "../../src/access/sessions.ts";
import { openLog } from "../../src/base/log.ts";
import { ServiceError } from "../../src/contracts/errors.ts";
import type { StoredKey } from "../../src/contracts/keys.ts";

const DAY_MS = 24 * 3_600_000;
const key = (id: string, more: Partial<StoredKey> = {}) => ({
  ...{ id, name: null, sha256: `of-${id}`, scope: "predict" as const, api: null, created_time: "" },
  ...{ rate: null, expires_time: null, revoked_time: null, last_used_time: null },
  ...more,
});
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const start = async (stored: ReturnType<typeof key>[], takesTokens = false) => {
  const store = {
    all: async () => stored,
    add: async () => {},
    replace: async () => true,
    revoke: async () => {},
  };
  const use = new KeyUse({ save: async () => {}, log: openLog("test") });
  const admin: AdminKeys = { keys: [key("admin-token", { scope: "admin" })], rotate: () => "t" };
  const sessions = new Sessions({ all: async () => [], add: async () => {}, remove: async () => {} });
  const keys = new Keys({ store, use, admin, sessions, takesTokens });
  await keys.start();
  return keys;
};

it("gateways get no key that is revoked, or expired for more than a day", async () => {
  const keys = await start([
    key("revoked", { revoked_time: inMs(-1) }),
    key("expired", { expires_time: inMs(-2 * DAY_MS) }),
    // A clock that is set back makes it valid again.
    key("just-expired", { expires_time: inMs(-DAY_MS / 2) }),
    key("later", { expires_time: inMs(DAY_MS) }),
    key("never"),
  ]);
  const ids = keys.forGateways().map(({ id }) => id);
  expect(ids).toEqual(["admin-token", "just-expired", "later", "never"]);
  expect(keys.list().map(({ id }) => id)).toContain("expired");
});

it("a server whose keys are all revoked still asks for keys", async () => {
  const keys = await start([key("revoked", { revoked_time: inMs(-1) })]);
  expect([keys.areAny, keys.isAny, keys.forGateways().length]).toEqual([true, true, 1]);
  const without = await start([], true);
  expect([without.areAny, without.isAny]).toEqual([false, true]);
});

it("a key whose change is not applied everywhere is shown nevertheless, unless it closes what was open", async () => {
  const unconfirmed = async () => {
    throw new ServiceError("server_unavailable", "not confirmed");
  };
  const asked = { name: null, scope: "predict" as const, api: null, rate: null, expires_in: null };
  const second = await start([key("first")]);
  second.serve({ keysChanged: unconfirmed });
  expect((await second.create(asked)).key).toMatch(/^quern_/);
  const first = await start([]);
  first.serve({ keysChanged: unconfirmed });
  await expect(first.create(asked)).rejects.toThrow("not confirmed");
  second.serve({ keysChanged: () => Promise.reject(new Error("a bug")) });
  await expect(second.create(asked)).rejects.toThrow("a bug");
});
