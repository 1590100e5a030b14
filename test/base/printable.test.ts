import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openLog } from "../../src/base/log.ts";
import { printable, printableLine, quotedBeginning } from "../../src/base/printable.ts";

describe("text for a terminal", () => {
  it("keeps ordinary text", () => {
    const text = "line\n\tcolumn é 漢字 שלום مرحبا می‌خواهم ක්‍ෂ 👩‍👩‍👧 ❤️‍🔥 \\x1b";
    expect(printable(text)).toBe(text);
    expect(printableLine(text)).toBe(text.replace("\n", "\\n").replace("\t", "\\t"));
  });

  it("contains no control sequence, whatever the character", () => {
    const codes = Array.from({ length: 0x3000 }, (_, code) => String.fromCharCode(code)).join("");
    const escaped = /\\u[0-9a-f]{4}|\\[nrt]/;
    const changed = (text: (one: string) => string) =>
      [...codes].filter((one) => text(one) !== one && escaped.test(text(one)));
    const expected = [
      ...Array.from({ length: 0x20 }, (_, code) => code),
      ...Array.from({ length: 0x21 }, (_, i) => 0x7f + i),
      ...[0xad, 0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x61c, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x180e],
      ...[0x200b, 0x200c, 0x200d, 0x200e, 0x200f],
      ...[0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064],
      ...Array.from({ length: 10 }, (_, i) => 0x2066 + i),
    ].map((code) => String.fromCharCode(code));
    expect(changed(printableLine)).toEqual(expected);
    expect(changed(printable)).toEqual(expected.filter((one) => one !== "\n" && one !== "\t"));
  });

  it.each([
    ["a\u200bb\ufeff", "a\\u200bb\\ufeff"],
    ["\u{e0041}\u{e0001}", "\\udb40\\udc41\\udb40\\udc01"],
    ["ad\u200dmin\u200c", "ad\\u200dmin\\u200c"],
    ["é\u2060\u200d\u3000\u200d", "é\\u2060\\u200d\u3000\\u200d"],
    ["\u200dé\u200d\u200d\u200c\u200db", "\\u200dé\u200d\\u200d\\u200c\\u200db"],
  ])("shows characters that are invisible: %j", (text, shown) => {
    for (const how of [printable, printableLine]) expect(how(text)).toBe(shown);
    expect(JSON.parse(printable(JSON.stringify(text)))).toBe(text);
  });

  it("quotes no more than the beginning of what was sent", () => {
    expect(quotedBeginning("a".repeat(100))).toBe(`"${"a".repeat(100)}"`);
    expect(quotedBeginning("a".repeat(8_000))).toBe(`"${"a".repeat(100)}..."`);
  });

  it("keeps the meaning of JSON", () => {
    const value = { "\u009b": "\u0000\u001b\u007f\u202e\u2028\r\n\t" };
    expect(JSON.parse(printable(JSON.stringify(value, null, "\t")))).toEqual(value);
  });

  it("is escaped in the server's log too", () => {
    const directory = mkdtempSync(join(tmpdir(), "quern-log-"));
    const file = join(directory, "log");
    openLog("controller", file).error({ event: "request_failed", path: "/\u009b2J\nforged" }, "why \u202e");
    const text = readFileSync(file, "utf8");
    rmSync(directory, { recursive: true });
    expect(text.split("\n").length).toBe(2);
    expect(text).toContain("\\u009b2J\\nforged");
    expect(text).toContain("why \\u202e");
  });
});
