import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveRoots } from "../../../src/object-store/files/allowed-paths.ts";
import { FileStore } from "../../../src/object-store/files/file-store.ts";
import { realOrSelf } from "../../../src/object-store/files/real-path.ts";
import { sortedNames } from "../../../src/object-store/files/sorted-names.ts";
import { ObjectChanged, type OpenObject } from "../../../src/object-store/object-store.ts";
import { newProbeName } from "../../../src/object-store/own-names.ts";
import {
  type FileSelection,
  type Reached,
  selectFiles,
  selectPages,
} from "../../../src/object-store/select/select-files.ts";
import { leastOfThree, longestTurnCpuMs } from "../../harness/turns.ts";

let directory: string;
let root: string;
let temporary: string;
let store: FileStore;
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-files-")));
  root = join(directory, "root");
  temporary = join(directory, "temporary");
  mkdirSync(root);
  mkdirSync(temporary);
  store = new FileStore([{ path: root, isReadOnly: false }], temporary, join(directory, "data"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(...names: string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), name);
  }
}

async function select(selection: FileSelection, from?: Reached): Promise<string[]> {
  const paths: string[] = [];
  for await (const { files } of selectPages(store, selection, { sizes: false, from }))
    paths.push(...files.map(({ path }) => path.slice(`file://${root}/`.length)));
  return paths;
}

const under = (...prefixes: string[]) => ({
  store_paths: prefixes.map((prefix) => `file://${root}/${prefix}`),
});

describe("an open file", () => {
  const path = () => join(root, "in.jsonl");
  const change = () => writeFileSync(path(), "{2}\n", { flag: "r+" });
  const read = async (object: OpenObject) => object.read(Buffer.alloc(4), 0, 0, 4);

  it("is no longer read after it was changed in place", async () => {
    writeFileSync(path(), "{1}\n");
    // Two writes within one tick of the kernel's clock have the same time.
    utimesSync(path(), 1, 1);
    const object = await store.open(`file://${path()}`);
    expect(await read(object)).toBe(4);
    change();
    await expect(read(object)).rejects.toThrow("was changed");
    await object.close();
  });

  it("that became a pipe or a directory is reported at once, and blocks no thread", async () => {
    execFileSync("mkfifo", [path()]);
    mkdirSync(join(root, "directory"));
    const pipes = Array.from({ length: 8 }, path);
    const opened = await Promise.allSettled(
      [...pipes, `${root}/directory`].map((name) => store.open(`file://${name}`)),
    );
    for (const one of opened)
      expect(one).toMatchObject({ status: "rejected", reason: expect.any(ObjectChanged) as unknown });
  });

  it("stays readable if only its permissions or names have changed", async () => {
    writeFileSync(path(), "{1}\n");
    const object = await store.open(`file://${path()}`);
    chmodSync(path(), 0o640);
    linkSync(path(), `${path()}.link`);
    expect(await read(object)).toBe(4);
    await object.close();
  });
});

describe("the files that a submission selects", () => {
  it.each<[string, string[], FileSelection["store_paths"], string[]]>([
    ["a prefix that ends in /", ["a/1", "a/b/2", "ab"], ["a/"], ["a/1", "a/b/2"]],
    ["a partial stem", ["img_1.png", "img_2.png", "im"], ["img"], ["img_1.png", "img_2.png"]],
    ["a stem that is also a directory", ["img/1", "img_2"], ["img"], ["img/1", "img_2"]],
    [
      "a complete path, and longer paths that begin with it",
      ["a.txt", "a.txt.bak"],
      ["a.txt"],
      ["a.txt", "a.txt.bak"],
    ],
    [
      "the order of full keys: / sorts after -",
      ["a/1", "a-b", "a.c", "a0"],
      ["a"],
      ["a-b", "a.c", "a/1", "a0"],
    ],
    [
      "the order of bytes, not of UTF-16",
      ["\u{10000}", "\ufffd", "é", "z"],
      [""],
      ["z", "é", "\ufffd", "\u{10000}"],
    ],
    ["the order of the entries", ["a", "b"], ["b", "a"], ["b", "a"]],
    ["a file that two entries select, once", ["a/1", "a/2"], ["a/2", "a/"], ["a/2", "a/1"]],
    [
      "files that several overlapping entries select, once",
      ["a/1", "a/b/2", "a/b/c/3", "a/b/d/4", "a/e/5"],
      ["a/b/c/", "a/b/d", "a/", "a/b/", "a/b/c/3", "a/e/"],
      ["a/b/c/3", "a/b/d/4", "a/1", "a/b/2", "a/e/5"],
    ],
    ["names that a URL would have encoded", ["a b%20#?.txt"], ["a b%20#"], ["a b%20#?.txt"]],
    ["no file", ["a"], ["b"], []],
    ["nothing below a file", ["a"], ["a/b"], []],
  ])("%s", async (_, files, prefixes, expected) => {
    write(...files);
    expect(await select(under(...prefixes))).toEqual(expected);
  });

  it("are filtered by includes, then by excludes, on the whole path", async () => {
    write("x/1.jpg", "x/2_3.jpg", "x/3.png");
    expect(await select({ ...under("x/"), includes: ["*.jpg"] })).toEqual([]);
    expect(await select({ ...under("x/"), includes: ["**.jpg"] })).toEqual(["x/1.jpg", "x/2_3.jpg"]);
    expect(await select({ ...under("x/"), includes: ["**.jpg"], excludes: ["**_3.jpg"] })).toEqual([
      "x/1.jpg",
    ]);
    expect(await select({ ...under("x/"), excludes: ["**.{jpg,png}"] })).toEqual([]);
  });

  it("are never the probes of outputs beside them, which may be gone when the job reads", async () => {
    const names = ["1.jsonl", ".quern-probe-x", ".quern-probe-01arz3ndektsv4rrffq69g5fav.jsonl"];
    write(...names.map((name) => `in/${name}`), `in/${newProbeName()}`, `in/sub/${newProbeName()}`);
    expect(await select(under("in/"))).toEqual(names.sort().map((name) => `in/${name}`));
    expect(await select({ ...under("in/.quern-probe-"), includes: ["**"] })).toHaveLength(2);
  });

  it("resume after a given file", async () => {
    write("a/1", "a/2", "b/1");
    const selection = under("b/", "a/");
    expect(await select(selection, { entry: 1, path: undefined })).toEqual(["a/1", "a/2"]);
    expect(await select(selection, { entry: 1, path: `file://${root}/a/1` })).toEqual(["a/2"]);
    expect(await select(selection, { entry: 1, path: `file://${root}/a/2` })).toEqual([]);
    expect(await select(selection, { entry: 2, path: undefined })).toEqual([]);
  });

  it("are those of the root if the root itself is given, with or without a slash", async () => {
    write("a");
    expect(await select({ store_paths: [`file://${root}`] })).toEqual(["a"]);
    expect(await select({ store_paths: [`file://${root}/`] })).toEqual(["a"]);
  });
});

describe("the data directory inside a root", () => {
  it("is left out of listings and never opened, by any path", async () => {
    write("a/1", "srv/data/admin-token", "srv/data/logs/x", "srv/data-2/1", "srv/z");
    const data = join(root, "srv", "data");
    store = new FileStore([{ path: root, isReadOnly: false }], temporary, data);
    const others = ["a/1", "srv/data-2/1", "srv/z"];
    expect(await select(under(""))).toEqual(others);
    expect(await select(under("srv/"))).toEqual(others.slice(1));
    expect(await select(under("srv/data"))).toEqual(["srv/data-2/1"]);
    // By another name: a link to it, a link into it, and a root that is reached by a link.
    symlinkSync(data, join(root, "door"));
    symlinkSync(join(data, "admin-token"), join(root, "token"));
    symlinkSync(root, join(directory, "by-link"));
    expect(await select(under(""))).toEqual(others);
    const byLink = { store_paths: [`file://${directory}/by-link/`] };
    const found: string[] = [];
    for await (const page of selectFiles(store, byLink, { sizes: false }))
      found.push(...page.map(({ path }) => path));
    expect(found).toEqual(others.map((name) => `file://${directory}/by-link/${name}`));
    for (const name of ["srv/data/", "srv/data/admin", "door/", "srv/data/logs/../"])
      await expect(select(under(name))).rejects.toMatchObject({ code: "path_not_allowed" });
    for (const name of ["srv/data/admin-token", "door/admin-token", "token", "srv/data/logs/../admin-token"])
      await expect(store.open(`file://${root}/${name}`)).rejects.toMatchObject({ code: "path_not_allowed" });
    await (await store.open(`file://${root}/srv/z`)).close();
  });

  it("cannot be a root, nor can a directory in it; a directory around it can", async () => {
    write("srv/data/logs/x");
    const data = join(root, "srv", "data");
    symlinkSync(data, join(directory, "data-link"));
    expect(await resolveRoots([root, "/"], join(directory, "data-link"))).toEqual(
      [root, "/"].map((path) => ({ path, isReadOnly: false })),
    );
    for (const inside of [data, join(data, "logs"), join(directory, "data-link")])
      await expect(resolveRoots([inside], data)).rejects.toThrow("it is in the data directory");
  });
});

describe("a link", () => {
  it("to a file inside the root is a file; any other link does not exist", async () => {
    write("in/1");
    writeFileSync(join(directory, "secret"), "s");
    symlinkSync(join(root, "in/1"), join(root, "good"));
    symlinkSync(join(directory, "secret"), join(root, "bad"));
    symlinkSync(root, join(root, "loop"));
    symlinkSync("nowhere", join(root, "broken"));
    expect(await select(under(""))).toEqual(["good", "in/1"]);
  });

  it.runIf(process.platform === "linux")("that changes meanwhile leads nowhere else", async () => {
    const [outside, file, inner] = [join(directory, "outside"), join(root, "file"), join(root, "inner")];
    mkdirSync(outside);
    writeFileSync(join(outside, "secret"), "secret");
    write("file", "inner/name");
    const turns = `
      const { renameSync, symlinkSync, unlinkSync, writeFileSync } = require("node:fs");
      const [outside, file, inner, next] = require("node:worker_threads").workerData;
      for (;;) {
        symlinkSync(outside + "/secret", next);
        renameSync(next, file);
        renameSync(inner, next);
        symlinkSync(outside, inner);
        writeFileSync(inner + "-file", "inside");
        renameSync(inner + "-file", file);
        unlinkSync(inner);
        renameSync(next, inner);
      }`;
    const workerData = [outside, file, inner, join(directory, "next")];
    const flipping = new Worker(turns, { eval: true, workerData });
    const seen = new Set<string>();
    const content = Buffer.alloc(6);
    const isEnough = () => seen.has("inside") && seen.has("inner/name");
    // On a busy machine the worker turns late.
    for (const start = Date.now(); Date.now() < start + (isEnough() ? 2_000 : 60_000); ) {
      const opened = await store.open(`file://${file}`).catch(() => undefined);
      await opened?.read(content, 0, 0, 6).then(
        () => seen.add(content.toString()),
        () => {},
      );
      await opened?.close();
      for (const path of await select(under("")).catch(() => [])) seen.add(path);
    }
    await flipping.terminate();
    expect(seen).toContain("inside");
    expect(seen).toContain("inner/name");
    expect(seen).not.toContain("secret");
    expect(seen).not.toContain("inner/secret");
  });

  it("to a directory outside the root does not reveal its names", async () => {
    mkdirSync(join(directory, "private"));
    writeFileSync(join(directory, "private", "name"), "");
    symlinkSync(join(directory, "private"), join(root, "door"));
    await expect(select(under("door/"))).rejects.toMatchObject({ code: "path_not_allowed" });
    await expect(select(under("door/name"))).rejects.toMatchObject({ code: "path_not_allowed" });
  });
});

describe("a directory that cannot exist", () => {
  it.each(["none/", "file/", `${"long".repeat(100)}/name`])(
    "has no files, and is not an outage: %s",
    async (prefix) => {
      write("file");
      expect(await select(under(prefix))).toEqual([]);
    },
  );
});

describe("the real path of a file that does not exist", () => {
  const deep = "a/".repeat(1900);

  it("is in its nearest existing directory, links followed", async () => {
    write("in/1");
    symlinkSync(join(root, "in"), join(root, "link"));
    symlinkSync("nowhere", join(root, "broken"));
    for (const [path, real] of [
      ["none", "none"],
      ["link", "in"],
      ["link/none", "in/none"],
      ["link/a/b/c/", "in/a/b/c"],
      ["link/1/below", "in/1/below"],
      ["broken/a", "broken/a"],
      [`link/${deep}`, `in/${deep.slice(0, -1)}`],
      [`${"long".repeat(100)}/name`, `${"long".repeat(100)}/name`],
    ] as const)
      expect(await realOrSelf(join(root, path))).toBe(join(root, real));
    expect(await realOrSelf("/")).toBe("/");
    expect(await realOrSelf("/no-such-directory")).toBe("/no-such-directory");
  });

  it("takes little CPU, however deep it is", async () => {
    const before = process.cpuUsage();
    for (let n = 0; n < 10; n++) await realOrSelf(join(root, `${deep}${n}`));
    const { user, system } = process.cpuUsage(before);
    // 1.2 s if each component is resolved, 0.03 s now.
    expect((user + system) / 1000).toBeLessThan(400);
  });
});

describe("a name that is not valid UTF-8", () => {
  it("is an error, not a file that is silently left out", async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "");
    await expect(select(under(""))).rejects.toThrow("not valid UTF-8");
  });

  it("does not affect selections that it is no part of", async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "");
    mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]));
    for (const name of ["b.jsonl", "é.jsonl"]) {
      writeFileSync(join(root, name), "");
      expect(await select(under(name))).toEqual([name]);
    }
    await expect(select(under("a"))).rejects.toThrow("not valid UTF-8");
  });
});

describe("sorted names", () => {
  it("are the same whether sorted on disk or in memory", async () => {
    const name = fc
      .string({ unit: "binary", minLength: 1, maxLength: 5 })
      .filter((text) => !/[\0\u0100-\u{10ffff}]/u.test(text));
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        async (names, run) => {
          const given = (async function* () {
            yield* names;
          })();
          const sorted: string[] = [];
          for await (const page of sortedNames(given, temporary, run)) sorted.push(...page);
          expect(sorted).toEqual([...names].sort());
        },
      ),
    );
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("take no long turn of the event loop", async () => {
    const count = 100_000;
    // Not in order, and all begin alike.
    const nameOf = (n: number) => `part-of-an-input-with-a-long-name-${(n * 7_919) % count}.jsonl`;
    async function* given() {
      for (let n = 0; n < count; n++) {
        if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
        yield nameOf(n);
      }
    }
    const longestOfOne = async () => {
      let sorted = 0;
      const longestMs = await longestTurnCpuMs(async () => {
        for await (const page of sortedNames(given(), temporary)) sorted += page.length;
      });
      expect(sorted).toBe(count);
      return longestMs;
    };
    expect(await leastOfThree(45, longestOfOne)).toBeLessThan(45);
  });
});
