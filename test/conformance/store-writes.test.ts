/** The writing half of the object store port, on S3, Google Cloud Storage, Azure Blob Storage and a directory. */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORE_PIECE_BYTES, STORE_PUT_BYTES_MAX } from "../../src/contracts/limits/stores.ts";
import { ConditionProbe } from "../../src/object-store/condition-probe.ts";
import { ConditionFailed, ObjectMissing, type ObjectStore } from "../../src/object-store/object-store.ts";
import { PatientStore } from "../../src/object-store/patient-store.ts";
import { eventually } from "../harness/eventually.ts";
import { openTestStore, STORES, type TestS3, type TestStore } from "../harness/stores.ts";

const MiB = 1024 * 1024;
const LARGE = bytesOf(40 * MiB + 17, 1);
const KEYS = [
  "keys/a b+c%20d.jpg",
  "keys/sub/x&y;'z#?.jpg",
  "keys/grüße/😀.jpg",
  'keys/"quoted"\\back',
  "keys/.hidden",
  "keys/ﬀ",
];

/** Bytes without a period of the size of a piece. */
function bytesOf(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0, state = seed; i + 4 <= length; i += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes.writeUInt32LE(state, i);
  }
  return bytes;
}

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function contentOf(store: ObjectStore, path: string): Promise<Buffer> {
  const object = await store.open(path);
  const content = Buffer.alloc(object.bytes);
  for (let at = 0; at < content.length; ) {
    const read = await object.read(content, at, at, content.length - at);
    if (read === 0) throw new Error(`${path} ends at ${at}`);
    at += read;
  }
  await object.close();
  return content;
}

async function etagOf(store: ObjectStore, path: string): Promise<string> {
  const object = await store.open(path);
  await object.close();
  return object.etag;
}

async function pathsOf(store: ObjectStore, prefix: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const page of store.list(prefix, { sizes: false })) paths.push(...page.map(({ path }) => path));
  return paths;
}

async function upload(store: ObjectStore, path: string, content: Buffer, chunkBytes = 1_000_003) {
  const writing = await store.create(path);
  const chunk = Buffer.alloc(chunkBytes);
  for (let at = 0; at < content.length; at += chunkBytes) {
    const bytes = content.copy(chunk, 0, at);
    await writing.write(chunk.subarray(0, bytes));
    // The caller may use its buffer again.
    chunk.fill(0);
  }
  return writing.complete();
}

const isMissing = (error: unknown) =>
  error instanceof ObjectMissing || (error as NodeJS.ErrnoException).code === "ENOENT";

describe.each(STORES)("$name", ({ name, start, isInstalled }) => {
  let server: TestStore;
  let store: ObjectStore;
  const at = (key: string) => `${server.base}/${key}`;
  const expectMissing = (path: string) => expect(store.open(path)).rejects.toSatisfy(isMissing);

  beforeAll(async () => {
    if (!isInstalled) return;
    server = await start();
    store = openTestStore(server);
    // A listing of a directory that is not there would say nothing.
    await server.put("other", "x");
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
  });

  /** What is in the store without being an object. */
  async function leftovers(): Promise<string[]> {
    if (server.scheme === "s3") return (server as TestS3).unfinished();
    if (server.scheme !== "file") return [];
    const names = readdirSync(fileURLToPath(server.base), { recursive: true }) as string[];
    return names.filter((file) => file.endsWith(".tmp"));
  }

  it
    .runIf(isInstalled)
    .each([0, 1, STORE_PIECE_BYTES - 1, STORE_PIECE_BYTES, STORE_PIECE_BYTES + 1, LARGE.length])(
    "writes an object of %i bytes in pieces",
    async (bytes) => {
      const content = LARGE.subarray(0, bytes);
      const { etag } = await upload(store, at(`pieces/${bytes}`), content);
      expect(digest(await contentOf(store, at(`pieces/${bytes}`)))).toBe(digest(content));
      expect(await etagOf(store, at(`pieces/${bytes}`))).toBe(etag);
      expect(await leftovers()).toEqual([]);
    },
  );

  it.runIf(isInstalled)("shows an object only when it is complete, and the old one until then", async () => {
    const path = at("shown/new");
    const content = LARGE.subarray(0, 2 * STORE_PIECE_BYTES + 1);
    for (const before of [undefined, Buffer.from("old")]) {
      const writing = await store.create(path);
      await writing.write(content);
      if (before === undefined) await expectMissing(path);
      else expect(await contentOf(store, path)).toEqual(before);
      expect(await pathsOf(store, at("shown/"))).toEqual(before === undefined ? [] : [path]);
      const written = await writing.complete();
      expect(await writing.complete()).toEqual(written);
      await writing.abort();
      await expect(writing.write(content)).rejects.toThrow("has ended");
      expect(digest(await contentOf(store, path))).toBe(digest(content));
      if (before === undefined) await store.put(path, Buffer.from("old"));
    }
  });

  it.runIf(isInstalled).each([10, STORE_PIECE_BYTES + 1, 3 * STORE_PIECE_BYTES])(
    "leaves nothing of %i bytes after abort()",
    async (bytes) => {
      const path = at(`aborted/${bytes}`);
      for (const isThere of [false, true]) {
        if (isThere) await store.put(path, Buffer.from("old"));
        const writing = await store.create(path);
        await writing.write(LARGE.subarray(0, bytes));
        await writing.abort();
        await writing.abort();
        await expect(writing.complete()).rejects.toThrow("was aborted");
        expect(await leftovers()).toEqual([]);
        if (isThere) expect(await contentOf(store, path)).toEqual(Buffer.from("old"));
        else await expectMissing(path);
      }
      await upload(store, path, LARGE.subarray(0, bytes));
      expect(digest(await contentOf(store, path))).toBe(digest(LARGE.subarray(0, bytes)));
    },
  );

  it.runIf(isInstalled)("puts whole objects, in place of older ones", async () => {
    for (const bytes of [0, 1, 5 * MiB, STORE_PUT_BYTES_MAX]) {
      const { etag } = await store.put(at("put/whole"), LARGE.subarray(0, bytes));
      expect(digest(await contentOf(store, at("put/whole")))).toBe(digest(LARGE.subarray(0, bytes)));
      expect(await etagOf(store, at("put/whole"))).toBe(etag);
    }
    await expect(store.put(at("put/large"), LARGE)).rejects.toThrow("writes at most");
  });

  it.runIf(isInstalled)("keeps the conditions of a write", async () => {
    const path = at("conditions/manifest.json");
    const put = (content: string, condition?: "absent" | { etag: string }) =>
      store.put(path, Buffer.from(content), condition);
    await expect(put("none", { etag: '"d41d8cd98f00b204e9800998ecf8427e"' })).rejects.toThrow(Error);
    await expectMissing(path);
    const first = await put("first", "absent");
    await expect(put("again", "absent")).rejects.toThrow(ConditionFailed);
    const second = await put("second", first);
    expect(second.etag).not.toBe(first.etag);
    await expect(put("late", first)).rejects.toThrow(ConditionFailed);
    expect((await contentOf(store, path)).toString()).toBe("second");
    // What a reader has seen is a condition too.
    await put("third", { etag: await etagOf(store, path) });
    await store.remove(path);
    await expect(put("after", second)).rejects.toThrow(ConditionFailed);
    await expectMissing(path);
    await put("new", "absent");
  });

  it.runIf(isInstalled)("lets exactly one of many writes with the same condition win", async () => {
    for (let round = 0; round < 5; round++) {
      const path = at(`race/${round}`);
      let condition: "absent" | { etag: string } = "absent";
      for (let step = 0; step < 3; step++) {
        const contents = Array.from({ length: 8 }, (_, i) => Buffer.from(`${round} ${step} ${i}`));
        const ends = await Promise.allSettled(contents.map((body) => store.put(path, body, condition)));
        const winners = contents.filter((_, i) => ends[i]!.status === "fulfilled");
        for (const end of ends)
          if (end.status === "rejected") expect(end.reason).toBeInstanceOf(ConditionFailed);
        expect(winners).toHaveLength(1);
        expect(await contentOf(store, path)).toEqual(winners[0]);
        condition = { etag: await etagOf(store, path) };
      }
    }
    expect(await leftovers()).toEqual([]);
  });

  it.runIf(isInstalled)("writes and removes keys with unusual characters", async () => {
    // Azurite takes a backslash for a slash.
    const keys = KEYS.filter((key) => server.scheme !== "az" || !key.includes("\\"));
    for (const key of keys) {
      await store.put(at(key), Buffer.from(key), "absent");
      expect((await contentOf(store, at(key))).toString()).toBe(key);
      await upload(store, at(key), LARGE.subarray(0, STORE_PIECE_BYTES + 5));
      expect(await contentOf(store, at(key))).toHaveLength(STORE_PIECE_BYTES + 5);
    }
    const inOrder = keys.map((key) => at(key)).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(await pathsOf(store, at("keys/"))).toEqual(inOrder);
    for (const key of keys) {
      await store.remove(at(key));
      await expectMissing(at(key));
    }
    expect(await pathsOf(store, at("keys/"))).toEqual([]);
  });

  it.runIf(isInstalled)("removes an object once, and does not mind the second time", async () => {
    await store.put(at("removed/one"), Buffer.from("1"));
    for (const key of ["removed/one/below", "removed/one", "removed/one", "never/there", "removed/one/below"])
      await store.remove(at(key));
    await expectMissing(at("removed/one"));
  });

  it.runIf(isInstalled)(
    "shows by a trial that it keeps conditions, and leaves nothing of the trial",
    async () => {
      const probe = new ConditionProbe(store);
      for (const prefix of ["trial/", "trial/job-", "trial/"])
        expect(await probe.hasConditions(at(prefix))).toBe(true);
      expect(await pathsOf(store, at("trial/"))).toEqual([]);
    },
  );

  it.runIf(isInstalled)(
    "removes what killed uploads have left under a prefix, and nothing else",
    async () => {
      await store.put(at("killed/part-0"), Buffer.from("0"));
      const killed = ["killed/part-1", "killed/below/part-2"];
      const left = await Promise.all(killed.map((key) => store.create(at(key))));
      for (const writing of left) await writing.write(LARGE.subarray(0, 20 * MiB));
      const other = await store.create(at("alive"));
      await other.write(LARGE);
      await eventually("the uploads have begun", async () => {
        const begun = await leftovers();
        return !["s3", "file"].includes(server.scheme) || begun.length === 3;
      });
      await store.removeUnfinished(at("killed/"));
      expect((await leftovers()).length).toBe(["s3", "file"].includes(server.scheme) ? 1 : 0);
      await other.complete();
      expect(await leftovers()).toEqual([]);
      expect(await pathsOf(store, at("killed/"))).toEqual([at("killed/part-0")]);
      expect(digest(await contentOf(store, at("alive")))).toBe(digest(LARGE));
      for (const writing of left) await writing.abort();
    },
  );

  it.runIf(isInstalled)("reports a missing bucket", async () => {
    if (server.scheme === "file") return;
    const path = `${server.scheme}://no-such-bucket/out/1`;
    const writes = [
      () => store.put(path, Buffer.from("1")),
      () => store.put(path, Buffer.from("1"), "absent"),
      () => store.put(path, Buffer.from("1"), { etag: "1" }),
      () => upload(store, path, Buffer.from("1")),
      () => upload(store, path, LARGE.subarray(0, 3 * STORE_PIECE_BYTES)),
      () => new ConditionProbe(store).hasConditions(path),
    ];
    for (const write of writes) {
      const error = await write().catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: "bucket_not_found", message: expect.stringContaining(path) });
    }
  });

  describe.runIf(isInstalled)("behind a network that fails", () => {
    const patient = (waits: string[] = []) =>
      new PatientStore(store, {
        onWait: (error) => waits.push(error.message),
        signal: new AbortController().signal,
      });

    // fake-gcs-server completes an upload that is asked for its progress: test/object-store/backends/gcs-writes.test.ts.
    it.skipIf(name.includes("fake-gcs"))(
      "sends only the piece again that did not arrive, or whose response was lost",
      async () => {
        const { proxy } = server;
        if (proxy === undefined) return;
        for (const kind of ["cut-request", "cut"] as const) {
          for (const afterBytes of kind === "cut" ? [1, 100] : [1, 3000, 2_000_000, STORE_PIECE_BYTES - 10]) {
            const path = at(`cut/${kind}-${afterBytes}`);
            const waits: string[] = [];
            const before = proxy.received;
            const writing = await patient(waits).create(path);
            for (let from = 0; from < LARGE.length; from += 3 * MiB) {
              // In the middle of the object.
              if (from === 15 * MiB) proxy.set({ kind, afterBytes, times: 6 });
              await writing.write(LARGE.subarray(from, from + 3 * MiB));
            }
            proxy.set({ kind, afterBytes, times: 2 });
            await writing.complete();
            proxy.set({ kind: "none" });
            expect(digest(await contentOf(store, path)), `${kind} ${afterBytes}`).toBe(digest(LARGE));
            expect(waits.length).toBeGreaterThan(0);
            // One whole object, and at most the pieces that were cut.
            expect(proxy.received - before).toBeLessThan(LARGE.length + 9 * (STORE_PIECE_BYTES + MiB));
          }
        }
        expect(await leftovers()).toEqual([]);
      },
      240_000,
    );

    it("waits for a store that answers 503", async () => {
      const { proxy } = server;
      if (proxy === undefined) return;
      const waits: string[] = [];
      const away = async (work: () => Promise<unknown>) => {
        const before = waits.length;
        proxy.set({ kind: "answer", status: 503 });
        const done = work();
        await eventually("the store is missed", () => waits.length - before >= 2);
        proxy.set({ kind: "none" });
        await done;
      };
      await away(() => patient(waits).put(at("away"), Buffer.from("1"), "absent"));
      await away(() => upload(patient(waits), at("away"), Buffer.from("22")));
      expect((await contentOf(store, at("away"))).toString()).toBe("22");
      await away(() => patient(waits).remove(at("away")));
      await expectMissing(at("away"));
      expect(waits[0]).toContain("503");
    }, 60_000);

    it("reports at once that the store does not answer, if nobody waits", async () => {
      const { proxy } = server;
      if (proxy === undefined) return;
      proxy.set({ kind: "answer", status: 503 });
      const writes = [
        () => store.put(at("1"), Buffer.from("1")),
        () => upload(store, at("1"), Buffer.from("1")),
        () => upload(store, at("1"), LARGE),
        () => store.remove(at("1")),
        () => new ConditionProbe(store).hasConditions(at("")),
      ];
      for (const write of writes) await expect(write()).rejects.toMatchObject({ code: "store_unreachable" });
      proxy.set({ kind: "none" });
    }, 60_000);
  });
});
