/** Data that must survive a power cut, which no kill can show: each commit and each items file is synced. */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeItemsFile } from "../../src/batch/records/items-file.ts";
import { itemsFile } from "../../src/contracts/data-layout.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

describe("a submission", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "quern-durable-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("is committed with SQLite's full durability", async () => {
    const db = openSqliteDatabase(join(directory, "quern.db"));
    expect(await db.all("SELECT synchronous FROM pragma_synchronous()")).toEqual([{ synchronous: 2 }]);
    await db.close();
  });

  it("has its items synced, after the directory entries that lead to them", async () => {
    const probe = await open(directory, "r");
    const handles = Object.getPrototypeOf(probe) as { sync: (this: { stat(): Promise<unknown> }) => unknown };
    await probe.close();
    const real = handles.sync;
    const synced: string[] = [];
    handles.sync = async function () {
      const stats = (await this.stat()) as { isDirectory(): boolean; size: number };
      synced.push(stats.isDirectory() ? "directory" : `${stats.size} bytes`);
      return real.call(this);
    };
    try {
      await writeItemsFile(itemsFile(directory, "job"), Buffer.from("[1]\n"));
    } finally {
      handles.sync = real;
    }
    expect(synced).toEqual(["directory", "directory", "4 bytes"]);
  });
});
