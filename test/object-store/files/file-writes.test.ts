import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { buildSync } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shortageOf } from "../../../src/base/disk-full.ts";
import { newUlid } from "../../../src/base/ids.ts";
import { ConditionProbe } from "../../../src/object-store/condition-probe.ts";
import { resolveRoots } from "../../../src/object-store/files/allowed-paths.ts";
import { FileStore } from "../../../src/object-store/files/file-store.ts";
import { UploadLost } from "../../../src/object-store/object-store.ts";
import { PatientStore } from "../../../src/object-store/patient-store.ts";
import { eventually } from "../../harness/eventually.ts";
import { root as checkout } from "../../harness/server.ts";

const MiB = 1024 * 1024;
const ONE = Buffer.from("1");

let directory: string;
let root: string;
let data: string;
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-writes-")));
  root = join(directory, "root");
  data = join(root, "data");
  mkdirSync(data, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

async function storeOver(...roots: string[]): Promise<FileStore> {
  return new FileStore(await resolveRoots(roots, data), tmpdir(), data);
}

async function writesTo(store: FileStore, path: string): Promise<unknown[]> {
  const upload = async () => (await store.create(`file://${path}`)).complete();
  const works = [() => store.put(`file://${path}`, ONE), upload, () => store.remove(`file://${path}`)];
  const caught: unknown[] = [];
  for (const work of works) caught.push(await work().catch((error: unknown) => error));
  return caught;
}

async function expectRefused(store: FileStore, path: string, message: string | RegExp): Promise<void> {
  for (const error of await writesTo(store, path)) {
    expect(error, path).toMatchObject({ code: "path_not_allowed" });
    expect((error as Error).message, path).toMatch(message);
  }
}

describe("a root", () => {
  it("may be written, and only read if it was given with :ro", async () => {
    mkdirSync(join(root, "in"));
    const both = await storeOver(`${join(root, "in")}:ro`, root);
    await both.put(`file://${root}/out/1`, ONE);
    writeFileSync(join(root, "in", "1"), "1");
    await (await both.open(`file://${root}/in/1`)).close();
    await expectRefused(both, join(root, "in", "1"), "reading only");
    await expectRefused(both, join(root, "in", "new", "1"), `--allow-local-root ${root}/in:ro`);
    expect(readdirSync(join(root, "in"))).toEqual(["1"]);
  });

  it("inside another one decides for itself, and reading only wins for the same directory", async () => {
    mkdirSync(join(root, "out"));
    const inner = await storeOver(`${root}:ro`, join(root, "out"));
    await inner.put(`file://${root}/out/1`, ONE);
    await expectRefused(inner, join(root, "1"), "reading only");
    for (const roots of [
      [root, `${root}:ro`],
      [`${root}:ro`, root],
    ])
      await expectRefused(await storeOver(...roots), join(root, "1"), "reading only");
  });

  it("is the only place that may be written, and never the data directory", async () => {
    const store = await storeOver(join(root));
    await expectRefused(store, join(directory, "beside"), `allowed roots: ${root}`);
    await expectRefused(store, join(directory, "no", "such", "directory"), "may write");
    await expectRefused(store, join(root, "..", "beside"), "may write");
    await expectRefused(store, join(data, "routes.json"), "data directory");
    await expectRefused(store, join(data, "new", "routes.json"), "data directory");
    await expectRefused(await storeOver(), join(root, "1"), "no local root is allowed");
    expect(readdirSync(directory)).toEqual(["root"]);
    expect(readdirSync(data)).toEqual([]);
  });

  it("may be a directory in the data directory, for a store of the server's own", async () => {
    const own = join(data, "outputs");
    mkdirSync(own);
    const store = new FileStore([{ path: own, isReadOnly: false }], tmpdir(), undefined);
    await store.put(`file://${own}/job/manifest.json`, ONE, "absent");
    expect(readFileSync(join(own, "job", "manifest.json"), "utf8")).toBe("1");
    await expectRefused(store, join(data, "routes.json"), "may write");
    const paths: string[] = [];
    for await (const page of store.list(`file://${own}/`, { sizes: false }))
      paths.push(...page.map(({ path }) => path));
    expect(paths).toEqual([`file://${own}/job/manifest.json`]);
  });
});

describe("a link", () => {
  it("does not lead out of the root, and is replaced rather than followed", async () => {
    const outside = join(directory, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "1"), "untouched");
    symlinkSync(outside, join(root, "door"));
    symlinkSync(join(outside, "1"), join(root, "file"));
    symlinkSync(data, join(root, "into-data"));
    symlinkSync(join(outside, "new"), join(root, "dangling"));
    const store = await storeOver(root);
    await expectRefused(store, join(root, "door", "1"), "may write");
    await expectRefused(store, join(root, "door", "new", "1"), "may write");
    await expectRefused(store, join(root, "into-data", "1"), "data directory");
    for (const name of ["file", "dangling"]) {
      await store.put(`file://${root}/${name}`, ONE);
      expect(readFileSync(join(root, name), "utf8")).toBe("1");
    }
    expect(readdirSync(outside)).toEqual(["1"]);
    expect(readFileSync(join(outside, "1"), "utf8")).toBe("untouched");
  });

  it.runIf(process.platform === "linux")(
    "that replaces a directory meanwhile leads nowhere else",
    async () => {
      const [outside, inner] = [join(directory, "outside"), join(root, "inner")];
      mkdirSync(outside);
      mkdirSync(inner);
      const turns = `
      const { existsSync, renameSync, rmSync, symlinkSync, unlinkSync } = require("node:fs");
      const [outside, inner, next] = require("node:worker_threads").workerData;
      const attempt = (work) => { try { work(); } catch {} };
      for (;;) {
        attempt(() => renameSync(inner, next));
        attempt(() => symlinkSync(outside, inner));
        attempt(() => unlinkSync(inner));
        // The store may have made a directory in the place of the missing one.
        if (existsSync(next)) attempt(() => rmSync(inner, { recursive: true, force: true }));
        attempt(() => renameSync(next, inner));
      }`;
      const flipping = new Worker(turns, {
        eval: true,
        workerData: [outside, inner, join(directory, "next")],
      });
      const store = await storeOver(root);
      let refused = 0;
      let written = 0;
      // On a busy machine the worker turns late.
      for (const start = Date.now(); Date.now() < start + (refused > 0 && written > 0 ? 2_000 : 60_000); ) {
        await store.put(`file://${inner}/sub/1`, ONE).then(
          () => written++,
          () => refused++,
        );
        await store.remove(`file://${inner}/sub/1`).catch(() => {});
        expect(readdirSync(outside)).toEqual([]);
      }
      await flipping.terminate();
      expect(refused).toBeGreaterThan(0);
      expect(written).toBeGreaterThan(0);
    },
  );
});

describe("a name", () => {
  it("that no file can have is refused, and nothing is left", async () => {
    const store = await storeOver(root);
    mkdirSync(join(root, "directory"));
    writeFileSync(join(root, "file"), "1");
    const put = (path: string) => store.put(`file://${root}/${path}`, ONE);
    for (const path of ["file/below", "x".repeat(300), "directory", "", "new/", "a/."])
      await expect(put(path), path).rejects.toMatchObject({ code: "path_not_allowed" });
    await expect(store.put(`file://${root}/directory`, ONE, "absent")).rejects.toThrow("already exists");
    expect(readdirSync(root).sort()).toEqual(["data", "directory", "file"]);
  });

  it("of a file that is being written is not listed, and cannot be written", async () => {
    const store = await storeOver(root);
    const upload = await store.create(`file://${root}/out/1`);
    await upload.write(Buffer.alloc(3 * MiB));
    const [temporary] = readdirSync(join(root, "out"));
    const listed = async () => {
      const paths: string[] = [];
      for await (const page of store.list(`file://${root}/`, { sizes: false }))
        paths.push(...page.map((one) => one.path));
      return paths;
    };
    expect(await listed()).toEqual([]);
    await expect(store.put(`file://${root}/out/${temporary}`, ONE)).rejects.toMatchObject({
      code: "path_not_allowed",
    });
    await upload.complete();
    expect(await listed()).toEqual([`file://${root}/out/1`]);
  });
});

describe("what the machine refuses", () => {
  it.runIf(process.platform === "linux")("is reported with the cure", async () => {
    // Not even root may write there.
    const store = new FileStore([{ path: "/sys", isReadOnly: false }], tmpdir(), undefined);
    const error = await store.put("file:///sys/quern", ONE).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: "store_forbidden",
      message: expect.stringContaining("give its user"),
    });
  });

  it("because the directory is gone ends the upload; the next one makes it again", async () => {
    const store = await storeOver(root);
    const upload = await store.create(`file://${root}/out/1`);
    await upload.write(Buffer.alloc(MiB));
    rmSync(join(root, "out"), { recursive: true });
    await expect(upload.complete()).rejects.toThrow(UploadLost);
    await upload.abort();
    await store.put(`file://${root}/out/1`, ONE);
  });

  const disk = realpathSync(mkdtempSync(join(tmpdir(), "quern-small-disk-")));
  const isMounted = (() => {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  })();
  it.runIf(isMounted)("because the disk is full is waited for, and the upload continues", async () => {
    const store = new FileStore([{ path: disk, isReadOnly: false }], tmpdir(), undefined);
    const filler = join(disk, "filler");
    try {
      writeFileSync(filler, Buffer.alloc(6 * MiB));
      const full = await store
        .put(`file://${disk}/a`, Buffer.alloc(4 * MiB))
        .catch((error: unknown) => error);
      expect(shortageOf(full)).toBe("disk");
      expect(readdirSync(disk)).toEqual(["filler"]);
      const waits: string[] = [];
      const patient = new PatientStore(store, {
        onWait: (error) => waits.push(error.message),
        signal: new AbortController().signal,
      });
      const content = Buffer.from(Array.from({ length: 6 * MiB }, (_, i) => (i * 7) % 251));
      const writing = (async () => {
        const upload = await patient.create(`file://${disk}/a`);
        for (let at = 0; at < content.length; at += 700_000)
          await upload.write(content.subarray(at, at + 700_000));
        return upload.complete();
      })();
      await eventually("the upload waits for the disk", () => waits.length > 1);
      rmSync(filler);
      await writing;
      expect(waits[0]).toContain("disk is full");
      expect(readFileSync(join(disk, "a")).equals(content)).toBe(true);
      expect(readdirSync(disk)).toEqual(["a"]);
    } finally {
      execFileSync("umount", [disk]);
      rmSync(disk, { recursive: true });
    }
  });
});

describe("a process that is killed while it writes", () => {
  /** Writes for ever, and prints a line when the next write begins. */
  const program = (body: string) => `
    import { FileStore } from ${JSON.stringify(join(checkout, "src/object-store/files/file-store.ts"))};
    const [root] = process.argv.slice(2);
    const store = new FileStore([{ path: root, isReadOnly: false }], "/tmp", undefined);
    const content = (byte, quarters) => Buffer.alloc(quarters * 256 * 1024, byte);
    ${body}`;

  function start(body: string): ChildProcess {
    const outfile = join(directory, "writer.mjs");
    const stdin = { contents: program(body), resolveDir: checkout, loader: "ts" as const };
    buildSync({ stdin, bundle: true, platform: "node", format: "esm", outfile, external: ["pino"] });
    return spawn(process.execPath, [outfile, root], { stdio: ["ignore", "pipe", "inherit"] });
  }

  async function killAfter(body: string, lines: number): Promise<void> {
    const child = start(body);
    let seen = 0;
    for await (const _ of createInterface({ input: child.stdout! })) if (++seen === lines) break;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  const leftIn = (path: string) =>
    (existsSync(path) ? readdirSync(path) : []).filter((name) => !name.endsWith(".tmp"));

  it("leaves no part of an upload under its name, and what is left can be removed", async () => {
    const body = `
      const upload = await store.create("file://" + root + "/out/part");
      for (let i = 0; i < 100; i++) { console.log(i); await upload.write(content(i, 1)); }
      await upload.complete();
      console.log("complete");
      await new Promise(() => setInterval(() => {}, 1000));`;
    for (const lines of [1, 2, 20, 60, 100]) {
      await killAfter(body, lines);
      const names = leftIn(join(root, "out"));
      if (lines < 100) expect(names).toEqual([]);
      for (const name of names) expect(statSync(join(root, "out", name)).size).toBe(25 * MiB);
      const store = await storeOver(root);
      await store.removeUnfinished(`file://${root}/out/`);
      expect(readdirSync(join(root, "out"))).toEqual(names);
    }
    rmSync(join(root, "out"), { recursive: true });
    await killAfter(body, 101);
    expect(readdirSync(join(root, "out"))).toEqual(["part"]);
    expect(statSync(join(root, "out", "part")).size).toBe(25 * MiB);
  });

  it("leaves the old object or the new one, never a mixture", async () => {
    const body = `
      for (let i = 1; ; i++) {
        console.log(i);
        await store.put("file://" + root + "/manifest", content(i % 256, 4 + 4 * (i % 3)));
      }`;
    for (const lines of [2, 3, 5, 8, 13]) {
      await killAfter(body, lines);
      const content = readFileSync(join(root, "manifest"));
      expect(content.length % MiB).toBe(0);
      expect(content.equals(Buffer.alloc(content.length, content[0]))).toBe(true);
    }
  });
});

describe("a probe of conditions", () => {
  const entries = () => readdirSync(root, { recursive: true }).sort();

  it("makes nothing, however deep the directory is, and refuses what no write could make", async () => {
    const store = await storeOver(root);
    const probe = new ConditionProbe(store);
    mkdirSync(join(root, "out"));
    writeFileSync(join(root, "file"), "1");
    symlinkSync("nowhere", join(root, "broken"));
    const before = entries();
    const deep = `new/${"a/".repeat(300)}`;
    const prefixes = ["", "out/", "out/new/", deep, "a/".repeat(1900)];
    const held = await Promise.all(prefixes.map((prefix) => probe.hasConditions(`file://${root}/${prefix}`)));
    expect(held).toEqual(prefixes.map(() => true));
    for (const prefix of ["file/", "file/below/", `new/${"x".repeat(300)}/`, "data/new/", "../beside/"])
      await expect(probe.hasConditions(`file://${root}/${prefix}`), prefix).rejects.toMatchObject({
        code: "path_not_allowed",
      });
    expect(entries()).toEqual(before);
    // The job's first write makes them.
    await store.put(`file://${root}/${deep}1`, ONE, "absent");
    expect(readFileSync(join(root, deep, "1"), "utf8")).toBe("1");
  }, 60_000);

  it.runIf(process.platform === "linux")("says that the directory may not be written", async () => {
    const store = new FileStore([{ path: "/sys", isReadOnly: false }], tmpdir(), undefined);
    const denied = new ConditionProbe(store).hasConditions("file:///sys/quern/new/");
    await expect(denied).rejects.toMatchObject({ code: "store_forbidden" });
  });

  it("is removed with unfinished files once it is so old that its server was killed", async () => {
    const store = await storeOver(root);
    const probes = [60, 120].map(
      (minutes) => `.quern-probe-${newUlid(Date.now() - minutes * 60_000 + 10_000)}`,
    );
    mkdirSync(join(root, "out"));
    for (const name of [...probes, "part"]) writeFileSync(join(root, "out", name), "1");
    await store.removeUnfinished(`file://${root}/out/`);
    expect(readdirSync(join(root, "out")).sort()).toEqual([probes[0], "part"]);
  });
});

describe("two names of one file", () => {
  it("are two objects: a write to one leaves the other as it was", async () => {
    const store = await storeOver(root);
    await store.put(`file://${root}/one`, ONE);
    linkSync(join(root, "one"), join(root, "two"));
    await store.put(`file://${root}/one`, Buffer.from("new"));
    expect(readFileSync(join(root, "two"), "utf8")).toBe("1");
  });
});
