/** Waiting for free space, on disks and databases that are really full: /dev/full, and a database at its last page. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeWait, isFault, shortageOf, whenDiskHasSpace } from "../../src/base/disk-full.ts";
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

  it("is committed once the database can be written again, if the disk fails", async () => {
    const db = openSqliteDatabase(join(directory, "quern.db"));
    await db.run("CREATE TABLE kept (value TEXT)");
    await db.run("PRAGMA query_only = ON");
    const waits: string[] = [];
    const onWait = (error: unknown) => {
      waits.push(describeWait(error, "the job waits"));
      void db.run("PRAGMA query_only = OFF");
    };
    const patient = patientDatabase(db, { onWait, signal: new AbortController().signal });
    await patient.run("INSERT INTO kept VALUES ('once')");
    expect(await db.all("SELECT value FROM kept")).toEqual([{ value: "once" }]);
    expect(waits).toHaveLength(1);
    expect(waits[0]).toMatch(
      /^the server's disk has an error \(.*readonly.*\): the job waits for it to work again$/,
    );
    await db.close();
  });

  it.each([
    [{ code: "EIO" }, true],
    [{ code: "EROFS" }, true],
    [{ code: "SQLITE_IOERR_WRITE" }, true],
    [{ code: "ERR_SQLITE_ERROR", errcode: 778 }, true],
    [{ cause: { code: "SQLITE_CANTOPEN" } }, true],
    [{ code: "SQLITE_CONSTRAINT", errcode: 19 }, false],
    [{ code: "ENOSPC" }, false],
    [{ code: "EACCES" }, false],
    [{ code: "42501" }, true],
    [{ cause: { code: "58030" } }, true],
    [{ code: "23505" }, false],
    [undefined, false],
  ])("finds in %o whether the disk or the database fails", (error, fails) => {
    expect(isFault(error)).toBe(fails);
  });

  it.each([
    [{ code: "ENOSPC" }, "disk"],
    [{ message: "database or disk is full" }, "disk"],
    [{ code: "EMFILE" }, "handles"],
    [{ cause: { code: "ERR_WORKER_INIT_FAILED" } }, "handles"],
    [{ code: "EIO" }, undefined],
  ])("finds in %o what the machine has run out of", (error, shortage) => {
    expect(shortageOf(error)).toBe(shortage);
  });
});
