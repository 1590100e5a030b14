/** The admin token: it can only be read, never guessed, whatever happened to its file. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyOf, readOrMakeAdminToken } from "../../src/access/admin-token.ts";

describe("the admin token", () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "quern-test-"));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));
  const file = () => join(dataDir, "admin-token");

  it.each([
    ["is absent", undefined],
    ["is empty, as after a power cut or on a full disk", ""],
    ["has white space only", " \n"],
    ["has characters that no header can carry", "\0".repeat(39)],
  ])("is created, readable by its user only, and kept if its file %s", (_, content) => {
    if (content !== undefined) writeFileSync(file(), content, { mode: 0o644 });
    const token = readOrMakeAdminToken(dataDir);
    expect(token).toMatch(/^[0-9a-f]{32}$/);
    expect(readFileSync(file(), "utf8")).toBe(`${token}\n`);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readOrMakeAdminToken(dataDir)).toBe(token);
  });

  it("is the content of its file, if a header can carry it", () => {
    writeFileSync(file(), "my-own\n");
    expect(readOrMakeAdminToken(dataDir)).toBe("my-own");
  });

  it("is not read from an empty header", () => {
    for (const empty of [{ "x-api-key": "" }, { authorization: "" }, { authorization: "Bearer " }])
      expect(keyOf(empty)).toBeUndefined();
    expect(keyOf({ authorization: "Basic x", "x-api-key": "k" })).toBe("k");
  });
});
