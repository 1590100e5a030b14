/** What is removed of workers that ended without a controller. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { reportFaultsTo } from "../../../src/base/boundary.ts";
import { removeLeftFiles } from "../../../src/engine/local/left-files.ts";

it("removes old files of workers that nobody knows, and nothing else", () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-left-"));
  const old = Date.now() / 1000 - 120;
  const make = (name: string, isOld = true) => {
    writeFileSync(join(directory, name), "");
    if (isOld) utimesSync(join(directory, name), old, old);
  };
  for (const name of ["r-00000001.sock", "r-00000001.note", "b-00000002.sock"]) make(name);
  const kept = ["controller.sock", "r-00000003.note", "r-00000003.sock", "r-00000004.sock", "routes.json"];
  for (const name of kept) make(name, name !== "r-00000004.sock");
  removeLeftFiles(directory, new Set(["r-00000003"]));
  expect(readdirSync(directory).sort()).toEqual(kept);
  rmSync(directory, { recursive: true });
});

it("does not fail over a directory of such a name", () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-left-"));
  mkdirSync(join(directory, "r-00000001.sock"));
  const old = Date.now() / 1000 - 120;
  utimesSync(join(directory, "r-00000001.sock"), old, old);
  const failing = vi.fn();
  reportFaultsTo(failing);
  removeLeftFiles(directory, new Set());
  expect(failing).toHaveBeenCalledOnce();
  rmSync(directory, { recursive: true });
});
