/** The causes of findings: docs/contract/explain.md has them all, and each can be found. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CAUSES } from "../../src/contracts/http/explain-operations.ts";
import { root } from "../harness/server.ts";

const FOLDERS = ["test/explain", "test/scenarios/explain"].map((folder) => join(root, folder));

it("are all in the contract, and each is found by a situation", () => {
  const page = readFileSync(join(root, "docs/contract/explain.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, cause]) => cause);
  expect([...rows].sort()).toEqual([...CAUSES].sort());
  const tests = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((file) => !file.endsWith("causes.test.ts"))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
  expect(CAUSES.filter((cause) => !tests.includes(`"${cause}"`))).toEqual([]);
});
