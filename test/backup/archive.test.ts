/** Archives of files with strange names: unpacked again they are the same, also for other programs. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { UnpackSync } from "tar";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CHECKSUMS, MANIFEST, readChecksums } from "../../src/backup/manifest.ts";
import { archiveOf } from "../../src/backup/write-archive.ts";

const LONG = "l".repeat(110);
const NAMES = ["plain", "a\nb", "c\\d", "\\n", "Icon\r", " ", `${LONG}é`, `${LONG}\nx`, `${LONG}\r`];
const PATHS = NAMES.map((name) => `d/${name}`).sort();
const manifest = {
  ...{ format: 1 as const, quern_version: "1", schema_version: 1, created_time: "2026-01-01T00:00:00Z" },
  ...{ files: NAMES.length, bytes: 0 },
};

let directory: string;
let archive: Buffer;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "quern-archive-"));
  const [source, copy] = [join(directory, "source"), join(directory, "copy")];
  for (const each of [join(source, "d"), copy]) mkdirSync(each, { recursive: true });
  for (const path of PATHS) writeFileSync(join(source, path), `in ${path}`);
  const files = PATHS.map((path) => ({ path, bytes: Buffer.byteLength(`in ${path}`), mode: 0o600 }));
  const entries = [{ path: "d", bytes: undefined, mode: 0o700 }, ...files];
  const snapshot = { manifest, directory: source, entries };
  archive = Buffer.concat(await Readable.from(archiveOf(snapshot)).toArray());
});
afterEach(() => rmSync(directory, { recursive: true }));

const found = (at: string) =>
  readdirSync(join(at, "d"))
    .map((name) => `d/${name}`)
    .sort();

it("restores each", async () => {
  const copy = join(directory, "copy");
  await pipeline(Readable.from([archive]), new UnpackSync({ cwd: copy, strict: true }));
  expect(found(copy)).toEqual(PATHS);
  for (const path of PATHS) expect(readFileSync(join(copy, path), "utf8")).toBe(`in ${path}`);
  const sums = readChecksums(readFileSync(join(copy, CHECKSUMS), "utf8"));
  expect([...sums.keys()].sort()).toEqual([MANIFEST, ...PATHS].sort());
});

it("is read by tar, and checked by sha256sum", () => {
  const copy = join(directory, "copy");
  const unpacked = spawnSync("tar", ["-x"], { cwd: copy, input: archive, encoding: "utf8" });
  expect(unpacked.stderr).toBe("");
  expect(found(copy)).toEqual(PATHS);
  expect(spawnSync("sha256sum", ["--quiet", "-c", CHECKSUMS], { cwd: copy, encoding: "utf8" }).stderr).toBe(
    "",
  );
});
