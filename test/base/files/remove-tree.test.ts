/** Removals of whole directories, in slices. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { removeTree } from "../../../src/base/files/remove-tree.ts";

/** Runs just before a directory is removed, which is empty then. */
let beforeRemoval: ((path: string) => void) | undefined;
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const rmdirSync = (path: string) => {
    beforeRemoval?.(path);
    real.rmdirSync(path);
  };
  return { ...real, rmdirSync };
});

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-remove-"));
});
afterEach(() => {
  beforeRemoval = undefined;
  return removeTree(directory);
});

/** A directory with 8 times 500 files. */
function made(name: string): string {
  const path = join(directory, name);
  for (let i = 0; i < 8; i++) {
    mkdirSync(join(path, `${i}`, "deep"), { recursive: true });
    for (let file = 0; file < 500; file++) writeFileSync(join(path, `${i}`, "deep", `${file}`), "");
  }
  return path;
}

it("removes all that is in a directory, and not what links in it lead to", async () => {
  const [path, other] = [made("one"), made("other")];
  symlinkSync(other, join(path, "link"));
  symlinkSync(path, join(directory, "to-one"));
  await removeTree(join(directory, "to-one"));
  expect(readdirSync(path)).toHaveLength(9);
  await removeTree(path);
  expect(readdirSync(directory)).toEqual(["other"]);
  expect(readdirSync(join(other, "7", "deep"))).toHaveLength(500);
});

it("removes a file, and what is not there", async () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  await removeTree(file);
  expect(existsSync(file)).toBe(false);
  await removeTree(file);
  await removeTree(join(file, "inside"));
});

it("may be asked twice at the same time", async () => {
  const path = made("twice");
  await Promise.all([removeTree(path), removeTree(path)]);
  expect(existsSync(path)).toBe(false);
});

it("removes what comes while it removes the rest, but does not go on for ever", async () => {
  const path = join(directory, "logs");
  mkdirSync(path);
  let files = 3;
  beforeRemoval = (empty) => {
    if (empty === path && files-- > 0) writeFileSync(join(path, `${files}`), "");
  };
  await removeTree(path);
  expect(existsSync(path)).toBe(false);
  mkdirSync(path);
  files = Number.POSITIVE_INFINITY;
  await expect(removeTree(path)).rejects.toThrow("ENOTEMPTY");
});

it("lets others have the event loop", async () => {
  const path = made("many");
  let turns = 0;
  const count = setInterval(() => turns++, 1);
  await removeTree(path);
  clearInterval(count);
  expect(turns).toBeGreaterThan(0);
});
