import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SegmentReader } from "../../../src/batch/dispatch/segment-reader.ts";
import { openItemsFile } from "../../../src/batch/records/items-file.ts";

const BLANK_MIB = 64;
const directory = mkdtempSync(join(tmpdir(), "quern-segments-"));
afterAll(() => rmSync(directory, { recursive: true }));

describe("a segment with blank lines", () => {
  it("is read into the memory of its items only, however many blank lines there are", async () => {
    const file = join(directory, "items.jsonl");
    const blank = Buffer.alloc(BLANK_MIB * 1024 * 1024, " \r\n\n");
    // No newline at the end, and lines that cross the pieces that are read.
    const items = [`{"a":"${"x".repeat(700_000)}"}`, '{"b":1}', `{"c":"${"y".repeat(600_000)}"}`];
    const content = Buffer.concat([
      Buffer.from(`${items[0]}\n`),
      blank,
      Buffer.from(items.slice(1).join("\n\n")),
    ]);
    writeFileSync(file, content);
    const reader = new SegmentReader({ open: () => openItemsFile(file) }, 2);
    const before = process.memoryUsage().arrayBuffers;
    const loaded = await reader.load({
      ...{ first_batch: 0, batch_count: 2, item_count: 3, has_blank_lines: true },
      ranges: [{ path: "", etag: "own", start: 0, end: content.length }],
      ...{ settled: new Uint8Array(1), settled_count: 0 },
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((BLANK_MIB / 4) * 1024 * 1024);
    expect([0, 1].map((batch) => loaded.payload(batch).toString())).toEqual([
      `[${items[0]},${items[1]}]`,
      `[${items[2]}]`,
    ]);
    await reader.close();
  });
});
