/** Changes of one key that meet, on SQLite and on PostgreSQL: a revoked key stays revoked. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeyUse } from "../../src/access/key-use.ts";
import type { Keys } from "../../src/access/keys.ts";
import { openLog } from "../../src/base/log.ts";
import { buildKeys, buildSessions } from "../../src/controller/build-control.ts";
import type { Infrastructure } from "../../src/controller/infrastructure.ts";
import type { Database } from "../../src/database/database.ts";
import { allKeys } from "../../src/database/key-rows.ts";
import { migrate } from "../../src/database/migrations.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { isPostgresInstalled, startPostgres } from "../harness/postgres.ts";

const HOUR_MS = 3_600_000;
const ASKED = { name: "ci", scope: "admin" as const, api: null, rate: null, expires_in: null };
const GONE = expect.objectContaining({ code: "key_not_found" });

async function openSqlite(dataDir: string) {
  return { db: openSqliteDatabase(join(dataDir, "quern.db")), stop: () => {} };
}

async function openPostgres() {
  const postgres = await startPostgres();
  return { db: await connectPostgres({ url: postgres.url }), stop: () => postgres.stop() };
}

describe.each([
  ["SQLite", openSqlite, true],
  ["PostgreSQL", openPostgres, isPostgresInstalled],
] as const)("a key on %s", (_, open, isHere) => {
  const dataDir = mkdtempSync(join(tmpdir(), "quern-key-changes-"));
  let db: Database;
  let stop = () => {};
  beforeAll(async () => {
    if (!isHere) return;
    ({ db, stop } = await open(dataDir));
    await migrate(db);
  });
  afterAll(async () => {
    await db?.close();
    stop();
    rmSync(dataDir, { recursive: true });
  });

  /** The keys of a controller that starts now. */
  async function started(): Promise<Keys> {
    const infrastructure = { db, options: { dataDir } } as unknown as Infrastructure;
    const use = new KeyUse({ save: async () => {}, log: openLog("test") });
    const keys = buildKeys(infrastructure, use, buildSessions(infrastructure));
    await keys.start();
    return keys;
  }
  const idsOf = (keys: Keys) => keys.list().map(({ id }) => id);
  const rowOf = async (id: string) => (await allKeys(db)).find((row) => row.id === id)!;

  it.runIf(isHere)("that is revoked cannot be rotated by a request that was on its way", async () => {
    const keys = await started();
    const { id } = await keys.create(ASKED);
    const [revoked, ...late] = await Promise.allSettled([
      keys.revoke(id),
      keys.rotate(id, HOUR_MS),
      keys.rotate(id, 0),
    ]);
    expect(revoked.status).toBe("fulfilled");
    expect(late).toEqual(late.map(() => ({ status: "rejected", reason: GONE })));
    expect((await rowOf(id)).revoked_time).not.toBeNull();
    // Neither the key nor a successor is left, here and after a restart.
    expect(idsOf(await started())).toEqual([]);
    expect(idsOf(keys)).toEqual([]);
  });

  it.runIf(isHere)("stays revoked if the rotation came first, and its successor stays valid", async () => {
    const keys = await started();
    const { id } = await keys.create(ASKED);
    const [successor] = await Promise.all([keys.rotate(id, HOUR_MS), keys.revoke(id)]);
    for (const seen of [keys, await started()]) expect(idsOf(seen)).toEqual([successor.id]);
    expect(await rowOf(id)).toMatchObject({
      revoked_time: expect.any(String),
      expires_time: expect.any(String),
    });
    await keys.revoke(successor.id);
  });

  it.runIf(isHere)("that another process revoked cannot be rotated, and opens nothing any more", async () => {
    const { id, key: _, ...about } = await (await started()).create(ASKED);
    const [one, other] = [await started(), await started()];
    await one.revoke(id);
    expect(idsOf(other)).toEqual([id]);
    await expect(other.rotate(id, HOUR_MS)).rejects.toEqual(GONE);
    expect([idsOf(other), other.forGateways().map((key) => key.id)]).toEqual([[], ["admin-token"]]);
    expect((await allKeys(db)).filter(({ created_time }) => created_time > about.created_time)).toEqual([]);
  });

  it.runIf(isHere)("ends at the sooner end of two rotations", async () => {
    const keys = await started();
    const { id } = await keys.create(ASKED);
    const successors = await Promise.all([keys.rotate(id, 1_000), keys.rotate(id, HOUR_MS)]);
    const sooner = Date.now() + HOUR_MS / 2;
    for (const seen of [keys, await started()]) {
      expect(Date.parse(seen.list().find((key) => key.id === id)!.expires_time!)).toBeLessThan(sooner);
      expect(idsOf(seen).sort()).toEqual([id, ...successors.map((key) => key.id)].sort());
    }
  });
});
