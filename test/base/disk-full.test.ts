/** Waiting for free space, on disks and databases that are really full: /dev/full, and a database at its last page. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { whenDiskHasSpace } from "../../src/base/disk-full.ts";
import { patientDatabase } from "../../src/database/patient-database.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

describe("data that does not fit on the disk", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "quern-full-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("is written to a file once there is free space", async () => {
    const file = join(directory, "file");
    symlinkSync("/dev/full", file);
    let waits = 0;
    const onWait = () => {
      waits++;
      rmSync(file);
    };
    await whenDiskHasSpace(() => writeFile(file, "kept"), { onWait, signal: new AbortController().signal });
    expect([waits, readFileSync(file, "utf8")]).toEqual([1, "kept"]);
  });

  it("is committed to the database completely and once, as soon as there is free space", async () => {
    const db = openSqliteDatabase(join(directory, "quern.db"));
    await db.run("CREATE TABLE kept (value TEXT)");
    const [{ pages }] = (await db.all<{ pages: number }>(
      "SELECT page_count AS pages FROM pragma_page_count()",
    )) as [{ pages: number }];
    await db.all(`PRAGMA max_page_count = ${pages}`);
    let waits = 0;
    const onWait = () => {
      waits++;
      void db.all("PRAGMA max_page_count = 1000");
    };
    const patient = patientDatabase(db, { onWait, signal: new AbortController().signal });
    await patient.transaction(async (tx) => {
      await tx.run("INSERT INTO kept VALUES (?)", ["first"]);
      await tx.run("INSERT INTO kept VALUES (?)", ["x".repeat(100_000)]);
    });
    expect(waits).toBe(1);
    expect(await db.all("SELECT length(value) AS length FROM kept")).toEqual([
      { length: 5 },
      { length: 100_000 },
    ]);
    await db.close();
  });
});
