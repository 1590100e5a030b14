import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openLog } from "../../src/base/log.ts";
import { printable, printableLine, quotedBeginning } from "../../src/base/printable.ts";

describe("text for a terminal", () => {
  it("keeps ordinary text", () => {
    const text = "line\n\tcolumn é 漢字 שלום مرحبا 👩‍👩‍👧 \\x1b";
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
      ...[0x061c, 0x200e, 0x200f],
      ...[0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
    ].map((code) => String.fromCharCode(code));
    expect(changed(printableLine)).toEqual(expected);
    expect(changed(printable)).toEqual(expected.filter((one) => one !== "\n" && one !== "\t"));
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
    openLog("controller", file).error({ path: "/\u009b2J\nforged" }, "why \u202e");
    const text = readFileSync(file, "utf8");
    rmSync(directory, { recursive: true });
    expect(text.split("\n").length).toBe(2);
    expect(text).toContain("\\u009b2J\\nforged");
    expect(text).toContain("why \\u202e");
  });
});
