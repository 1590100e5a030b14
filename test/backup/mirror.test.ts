/** The mirror of a directory that others write to. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Mirror } from "../../src/backup/mirror.ts";

let root: string;
let mirror: Mirror;
const source = (path = "") => join(root, "source", path);
const target = (path = "") => join(root, "target", path);
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "quern-mirror-"));
  mirror = new Mirror(source(), target());
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(source(path)), { recursive: true });
  writeFileSync(source(path), text);
}

function names(directory: string): string[] {
  return readdirSync(directory, { recursive: true }).map(String).sort();
}

/** As if everything was made long ago. */
function age(): void {
  for (const path of ["", ...names(source())]) utimesSync(source(path), 1, 1);
}

it("of a directory that is not there has nothing", async () => {
  await mirror.update();
  await mirror.update();
  expect(readdirSync(root)).toEqual([]);
});

it("keeps what is removed or replaced after the last update", async () => {
  write("a/one", "1");
  write("a/two", "2");
  await mirror.update();
  rmSync(source("a/one"));
  write("new", "2, again");
  renameSync(source("new"), source("a/two"));
  expect(names(target())).toEqual(["a", "a/one", "a/two"]);
  expect(readFileSync(target("a/two"), "utf8")).toBe("2");
});

it.each(["just now", "long ago"])("follows what changed in directories made %s", async (made) => {
  write("a/one", "1");
  write("a/b/two", "2");
  write("c/three", "3");
  write("c/index.1", "12");
  write("d/four", "4");
  if (made === "long ago") age();
  await mirror.update();
  rmSync(source("a/one"));
  write("a/b/new", "n");
  write("e/five", "5");
  write("moved", "3, again");
  renameSync(source("moved"), source("c/three"));
  writeFileSync(source("c/index.1"), "34");
  rmSync(source("d"), { recursive: true });
  await mirror.update();
  expect(names(target())).toEqual(names(source()));
  expect(readFileSync(target("c/three"), "utf8")).toBe("3, again");
  expect(readFileSync(target("c/index.1"), "utf8")).toBe("34");
});

it("shares the bytes of a file that grows, and copies one that is changed in its middle", async () => {
  write("1.jsonl", "a");
  write("index.3", "a");
  await mirror.update();
  appendFileSync(source("1.jsonl"), "b");
  writeFileSync(source("index.3"), "b");
  expect(statSync(target("1.jsonl")).ino).toBe(statSync(source("1.jsonl")).ino);
  expect(readFileSync(target("index.3"), "utf8")).toBe("a");
});
