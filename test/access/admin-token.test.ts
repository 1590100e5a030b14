/** The admin token: it can only be read, never guessed, whatever happened to its file. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AdminToken, keyOf, readOrMakeAdminToken } from "../../src/access/admin-token.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

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

  it("is replaced by another, readable by its user only", () => {
    const admin = new AdminToken(dataDir);
    const former = readFileSync(file(), "utf8").trim();
    const token = admin.rotate(0);
    expect([readFileSync(file(), "utf8"), statSync(file()).mode & 0o777]).toEqual([`${token}\n`, 0o600]);
    expect(token).not.toBe(former);
    expect(admin.keys.map((key) => key.sha256)).toEqual([sha256(token)]);
    expect(new AdminToken(dataDir).keys).toEqual(admin.keys);
  });

  it("leaves the former one valid for its grace, of which only the hash is kept", () => {
    const admin = new AdminToken(dataDir);
    const former = readFileSync(file(), "utf8").trim();
    admin.rotate(60_000);
    const [, kept] = new AdminToken(dataDir).keys;
    expect(kept).toEqual(admin.keys[1]);
    expect([kept!.sha256, Date.parse(kept!.expires_time!) - Date.now() < 60_001]).toEqual([
      sha256(former),
      true,
    ]);
    const keptFile = `${file()}.former`;
    expect([readFileSync(keptFile, "utf8").includes(former), statSync(keptFile).mode & 0o777]).toEqual([
      false,
      0o600,
    ]);
    admin.rotate(0);
    expect([admin.keys.length, new AdminToken(dataDir).keys.length]).toEqual([1, 1]);
  });

  it.each([
    ["is empty", ""],
    ["was cut off", "0123"],
    ["has no time", `${"0".repeat(64)} never\n`],
  ])("has no former one if its file %s", (_, content) => {
    writeFileSync(`${file()}.former`, content);
    expect(new AdminToken(dataDir).keys.length).toBe(1);
  });

  it("stays valid without end if the server was killed before it was replaced", () => {
    const token = readOrMakeAdminToken(dataDir);
    writeFileSync(`${file()}.former`, `${sha256(token)} 2000-01-01T00:00:00.000Z\n`);
    expect(new AdminToken(dataDir).keys.map((key) => key.expires_time)).toEqual([null]);
  });

  it("is not read from an empty header", () => {
    for (const empty of [{ "x-api-key": "" }, { authorization: "" }, { authorization: "Bearer " }])
      expect(keyOf(empty)).toBeUndefined();
    expect(keyOf({ authorization: "Basic x", "x-api-key": "k" })).toBe("k");
  });
});
