/** What another user's server can write to the machine that runs `quern export api`. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { exportApi } from "../../src/cli/project/export.ts";
import type { CliContext } from "../../src/cli/server/context.ts";
import { archiveOf, type Entry, tarEntry } from "../harness/archives.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-export-"));
  writeFileSync(join(directory, "mine"), "MINE");
});
afterEach(() => rmSync(directory, { recursive: true }));

const exported = async (...entries: (Entry | Buffer)[]) => {
  const archive = archiveOf({ path: "config.yaml", body: "[]" }, { path: "project/p.py" }, ...entries);
  const context = {
    output: "table",
    out: async () => {},
    err: () => {},
    client: { request: async () => Readable.from([archive]) },
  };
  await exportApi(context as unknown as CliContext, "api", join(directory, "new"), undefined);
};

it("an exported file runs with the rights of the user who starts it", async () => {
  await exported({ path: "project/tool", body: "#!/bin/sh", mode: 0o6755 });
  expect(statSync(join(directory, "new", "tool")).mode & 0o7777).toBe(0o755);
});

it("an exported archive of 100,001 empty files is refused, and leaves nothing", async () => {
  const empty = tarEntry({ path: "project/0" });
  const same = Buffer.alloc(100_001 * empty.length, empty);
  await expect(exported(same)).rejects.toThrow("has more than 100002 files and directories");
  expect(readdirSync(join(directory, "new"))).toEqual([]);
}, 60_000);

it.each([
  { path: "project/../../mine", body: "THEIRS" },
  { path: "../mine", body: "THEIRS" },
  { path: "/project/mine", body: "THEIRS" },
  { path: "project/link", type: "SymbolicLink", linkpath: "../../../mine" },
  { path: "project/link", type: "SymbolicLink", linkpath: "/etc/passwd" },
  // Leads out only after the files were moved from `project/` to their directory.
  { path: "project/link", type: "SymbolicLink", linkpath: "../mine" },
  { path: "project/link", type: "SymbolicLink", linkpath: "p.py" },
  { path: "project/link", type: "Link", linkpath: "config.yaml" },
  { path: "project/pipe", type: "FIFO" },
])("an exported archive with $path to $linkpath is refused, and existing files stay", async (entry) => {
  await expect(exported(entry)).rejects.toThrow(/the archive was cut off/);
  expect(readFileSync(join(directory, "mine"), "utf8")).toBe("MINE");
  expect(existsSync(join(directory, "new", "p.py"))).toBe(false);
});
