/** What lists need of each deployed API: its configuration is read once per version, and never an old one is shown. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ApiOutline, ApiOutlines } from "../../src/apis/records/api-outlines.ts";
import { type AnyVersion, deleteApi } from "../../src/apis/records/api-rows.ts";
import { saveVersion } from "../../src/apis/records/save-version.ts";
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

describe("the outlines of deployed APIs", () => {
  const directory = mkdtempSync(join(tmpdir(), "outlines-"));
  let db: Database;
  /** Statements that read configurations. */
  let reads = 0;
  let outlines: ApiOutlines;
  beforeAll(async () => {
    db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
  });
  afterAll(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });
  beforeEach(async () => {
    for (const name of ["a", "b"]) await deleteApi(db, name);
    reads = 0;
    outlines = new ApiOutlines({
      ...{ run: db.run.bind(db), transaction: db.transaction.bind(db), close: db.close.bind(db) },
      all: (sql, params) => {
        if (sql.includes("api_versions")) reads++;
        return db.all(sql, params);
      },
    });
  });

  const save = (name: string, endpoint: string, api_id = "id") => {
    const config = { name, kind: "BatchAPI", networking: { endpoint } };
    const deployed_time = "2026-01-01T00:00:00.000000000Z";
    const ids = { api_id, predictor_id: "p", project_id: "p" };
    const version = { name, ...ids, deployed_time, config, configText: "{}" } as unknown as AnyVersion;
    return db.transaction((tx) => saveVersion(tx, version));
  };
  const endpoints = (all: readonly ApiOutline[]) => all.map(({ endpoint }) => endpoint);

  it("read each configuration once, however many ask at once and later", async () => {
    await save("b", "/b1");
    await save("a", "/a1");
    const all = await Promise.all(Array.from({ length: 5 }, () => outlines.all()));
    for (const one of [...all, await outlines.all()]) expect(endpoints(one)).toEqual(["/a1", "/b1"]);
    expect((await outlines.find("a"))?.endpoint).toBe("/a1");
    expect(reads).toBe(2);
  });

  it("show what was deployed last, even with the same id and under a clock that stands still", async () => {
    await save("a", "/a1");
    expect(endpoints(await outlines.all())).toEqual(["/a1"]);
    await save("a", "/a2", "other");
    expect((await outlines.find("a"))?.endpoint).toBe("/a2");
    await save("a", "/a3", "other");
    expect(endpoints(await outlines.all())).toEqual(["/a3"]);
    await deleteApi(db, "a");
    expect([await outlines.all(), await outlines.find("a")]).toEqual([[], undefined]);
    await save("a", "/a4", "other");
    expect(endpoints(await outlines.all())).toEqual(["/a4"]);
  });

  it("do not keep a version as the one before it, if it is deployed while that is read", async () => {
    await save("a", "/a1");
    const before = outlines.all();
    await save("a", "/a2", "other");
    await before;
    expect(endpoints(await outlines.all())).toEqual(["/a2"]);
  });

  it("say why a row cannot be read, beside the others", async () => {
    await save("a", "/a1");
    await save("b", "/b1");
    await db.run("UPDATE api_versions SET spec_json = '{' WHERE name = 'a'");
    const [a, b] = await outlines.all();
    expect(a).toMatchObject({
      endpoint: "/a",
      kind: "BatchAPI",
      why: expect.stringContaining("deploy it again"),
    });
    expect(b).toEqual({ ...b, endpoint: "/b1" });
  });

  it("are read again if the database failed", async () => {
    await save("a", "/a1");
    const all = db.all.bind(db);
    let fails = true;
    const broken = new ApiOutlines({
      ...{ run: db.run.bind(db), transaction: db.transaction.bind(db), close: db.close.bind(db) },
      all: async (sql, params) => {
        if (fails && sql.includes("api_versions")) throw new Error("away");
        return all(sql, params);
      },
    });
    await expect(broken.all()).rejects.toThrow("away");
    fails = false;
    expect(endpoints(await broken.all())).toEqual(["/a1"]);
  });
});
