/** Archives that nobody packs by accident: they are refused, leave no file open, and write nothing outside. */
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ArchiveLimits, unpackArchive } from "../../../src/apis/projects/unpack-archive.ts";
import { archiveOf, type Entry, longEntry, tarEnd, tarEntry } from "../../harness/archives.ts";

const CONFIG: Entry = { path: "config.yaml", body: "- name: a\n" };
const SMALL: ArchiveLimits = { bytes: 100_000, entries: 20, headers: 100_000 };

let parent: string;
let into: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "quern-archives-"));
  into = join(parent, "into");
  mkdirSync(into);
});
afterEach(() => rmSync(parent, { recursive: true }));

const names = () => readdirSync(into, { recursive: true }).map(String).sort();
/** Files that this process has open there. */
const openHere = () =>
  readdirSync("/proc/self/fd")
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return "";
      }
    })
    .filter((path) => path.startsWith(parent));

async function unpack(archive: Buffer | Iterable<Buffer>, limits?: ArchiveLimits): Promise<unknown> {
  const source = Readable.from(Buffer.isBuffer(archive) ? [archive] : archive);
  return await unpackArchive(source, into, limits).then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("an archive", () => {
  const whole = [
    CONFIG,
    { path: "./project/", type: "Directory" },
    { path: "./project/p.py", body: "pass\n" },
    { path: "project/a/b//c.bin", body: Buffer.alloc(200_000, 7) },
    { path: "project/run.sh", body: "#!/bin/sh\n", mode: 0o755 },
    longEntry(`project/${"x/".repeat(40)}${"n".repeat(200)}`, "long"),
    { path: "README", body: "beside" },
  ];

  it("is unpacked, gzipped or not, in chunks of any size", async () => {
    const archive = archiveOf(...whole);
    const bytes = (buffer: Buffer) => Array.from(buffer, (_, at) => buffer.subarray(at, at + 1));
    for (const form of [archive, gunzipSync(archive), bytes(archive.subarray(0, archive.length))]) {
      expect(await unpack(form)).toBeUndefined();
      expect(readFileSync(join(into, "project/a/b/c.bin")).equals(Buffer.alloc(200_000, 7))).toBe(true);
      expect(readFileSync(join(into, "config.yaml"), "utf8")).toBe("- name: a\n");
      expect(names()).not.toContain("README");
      expect(names().length).toBe(48);
      rmSync(into, { recursive: true });
      mkdirSync(into);
    }
  });

  it("is unpacked without what follows its end, which takes no memory", async () => {
    const archive = gunzipSync(archiveOf(...whole));
    const zeros = Buffer.alloc(64 * 1024);
    function* pieces() {
      yield archive;
      for (let sent = 0; sent < 48 * 1024 * 1024; sent += zeros.length) yield zeros;
    }
    let largest = 0;
    const before = process.memoryUsage().arrayBuffers;
    const watched = setInterval(() => {
      largest = Math.max(largest, process.memoryUsage().arrayBuffers - before);
    }, 1);
    expect(await unpack(pieces())).toBeUndefined();
    clearInterval(watched);
    expect(largest).toBeLessThan(16 * 1024 * 1024);
    expect(readFileSync(join(into, "project/p.py"), "utf8")).toBe("pass\n");
    expect(await unpack(pieces(), { ...SMALL, bytes: 1_000_000 })).toMatchObject({ code: "body_too_large" });
  });

  it("is unpacked without setuid, setgid and sticky bits", async () => {
    const modes = [0o4755, 0o2755, 0o1777, 0o6644, 0o000, 0o444];
    const files = modes.map((mode) => ({ path: `project/f${mode}`, mode }));
    const directories = modes.map((mode) => ({ path: `project/d${mode}`, mode, type: "Directory" }));
    const inside = modes.map((mode) => ({ path: `project/d${mode}/x`, body: "x" }));
    expect(await unpack(archiveOf(CONFIG, ...files, ...directories, ...inside))).toBeUndefined();
    const all = names().map((name) => lstatSync(join(into, name)).mode & 0o7022);
    expect(all.filter((mode) => mode !== 0)).toEqual([]);
    expect(lstatSync(join(into, `project/f${0o4755}`)).mode & 0o100).toBe(0o100);
    expect(lstatSync(join(into, `project/f${0o444}`)).mode & 0o600).toBe(0o600);
  });
});

describe("an invalid archive", () => {
  const deep = `project/${"d/".repeat(70)}x`;
  it.each<[string, string, (Entry | Buffer)[]]>([
    [
      "a symbolic link",
      "is a symbolic link",
      [{ path: "project/x", type: "SymbolicLink", linkpath: "/etc/passwd" }],
    ],
    ["a hard link", "is a hard link", [{ path: "project/x", type: "Link", linkpath: "/etc/passwd" }]],
    ["a character device", "is a device", [{ path: "project/x", type: "CharacterDevice" }]],
    ["a block device", "is a device", [{ path: "project/x", type: "BlockDevice" }]],
    ["a named pipe", "is a named pipe", [{ path: "project/x", type: "FIFO" }]],
    ["an unknown type", "only files and directories", [{ path: "project/x", type: "SparseFile" }]],
    ["a path with ..", "leads out of the archive", [{ path: "project/../../x", body: "x" }]],
    ["an absolute path", "absolute path", [{ path: "/project/x", body: "x" }]],
    ["an absolute path in a pax header", "absolute path", [longEntry("/tmp/x", "x")]],
    ["a long path", "more than 1024 bytes", [longEntry(`project/${"a".repeat(200)}/`.repeat(6), "x")]],
    ["a long name", "more than 255 bytes", [longEntry(`project/${"ä".repeat(128)}`, "x")]],
    ["a deep path", "more than 64 directories", [longEntry(deep, "x")]],
    ["a project that is a file", "project a directory", [{ path: "project", body: "x" }]],
    ["a configuration that is a directory", "must be a file", [{ path: "config.yaml", type: "Directory" }]],
    ["a file inside the configuration", "below config.yaml", [{ path: "config.yaml/x", body: "x" }]],
    [
      "a file inside a file",
      "cannot be read",
      [
        { path: "project/a", body: "x" },
        { path: "project/a/b", body: "y" },
      ],
    ],
    ["metadata of megabytes", "metadata of more than a megabyte", [longEntry("x".repeat(1_200_000))]],
    ["a damaged archive", "checksum", [Buffer.alloc(512, 1)]],
    ["a truncated archive", "Truncated", [{ path: "project/x", size: 2_000, body: "x" }]],
  ])("is refused: %s", async (_, message, entries) => {
    expect(await unpack(archiveOf(CONFIG, ...entries))).toMatchObject({
      code: "invalid_project",
      message: expect.stringContaining(message),
    });
    expect(readdirSync(parent)).toEqual(["into"]);
  });

  it("is refused before it is unpacked if its sizes and numbers are above the limit", async () => {
    const zeros = gzipSync(Buffer.alloc(1024 * 1024));
    let taken = 0;
    // Three thousand million bytes, none of which need be read.
    const bomb = function* () {
      yield gzipSync(
        Buffer.concat([tarEntry(CONFIG), tarEntry({ path: "project/big", size: 3_000_000_000 })]),
      );
      for (; taken < 3_000; taken++) yield zeros;
    };
    expect(await unpack(bomb())).toMatchObject({
      code: "body_too_large",
      message: expect.stringContaining(".quernignore"),
    });
    expect(taken).toBeLessThan(100);
    const many = Array.from({ length: 40 }, (_, i) => ({ path: `project/${i}` }));
    const implied = Array.from({ length: 4 }, (_, i) => ({ path: `project/deep${i}/a/b/c/d/e/f/x` }));
    const heavy = Array.from({ length: 5 }, (_, i) => ({
      path: `project/heavy${i}`,
      body: Buffer.alloc(30_000),
    }));
    const elsewhere = heavy.map((entry, i) => ({ ...entry, path: `other/${i}` }));
    for (const entries of [many, implied, heavy, elsewhere])
      expect(await unpack(archiveOf(CONFIG, ...entries), SMALL)).toMatchObject({ code: "body_too_large" });
    expect(names().length).toBeLessThan(60);
  });

  it("is refused if its headers do not end, or if it is compressed twice or in another format", async () => {
    const header = longEntry(`project/${"x/".repeat(50)}y`).subarray(0, 1024);
    const headers = function* () {
      for (let i = 0; i < 10_000; i++) yield header;
    };
    expect(await unpack(headers(), SMALL)).toMatchObject({
      code: "body_too_large",
      message: expect.stringContaining("besides its files"),
    });
    const padding = function* () {
      yield archiveOf(CONFIG);
      for (let i = 0; i < 10_000; i++) yield gzipSync(Buffer.alloc(100_000));
    };
    expect(await unpack(padding(), SMALL)).toMatchObject({ code: "body_too_large" });
    const twice = gzipSync(archiveOf(CONFIG));
    expect(await unpack(twice)).toMatchObject({
      code: "invalid_project",
      message: expect.stringContaining("twice"),
    });
    const zstandard = Buffer.concat([Buffer.from("28b52ffd", "hex"), gunzipSync(archiveOf(CONFIG))]);
    expect(await unpack(zstandard)).toMatchObject({ code: "invalid_project" });
    expect(await unpack(Buffer.from("no archive at all"))).toMatchObject({ code: "invalid_project" });
    expect(await unpack(tarEnd.subarray(0, 10))).toMatchObject({ code: "invalid_project" });
  });

  it("leaves no file open, even if the upload stops in the middle of a file", async () => {
    const cut = archiveOf(CONFIG, { path: "project/big", body: Buffer.alloc(3_000_000, "quern") });
    const upload = async function* () {
      yield gunzipSync(cut).subarray(0, 1_000_000);
      throw new Error("the client has left");
    };
    await expect(unpackArchive(Readable.from(upload()), into)).rejects.toMatchObject({
      code: "invalid_project",
    });
    expect(openHere()).toEqual([]);
  });
});
