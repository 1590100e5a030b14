/**
 * The object store port, on S3, Google Cloud Storage, Azure Blob Storage and a directory: the guarantees that jobs
 * need.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ObjectChanged, type ObjectStore } from "../../src/object-store/object-store.ts";
import { newProbeName } from "../../src/object-store/own-names.ts";
import { PatientStore } from "../../src/object-store/patient-store.ts";
import { selectFiles } from "../../src/object-store/select/select-files.ts";
import { eventually } from "../harness/eventually.ts";
import { openTestStore, STORES, type TestStore } from "../harness/stores.ts";

const KEYS = [
  "images/a b+c%20d.jpg",
  "images/img_1.jpg",
  "images/img_10.jpg",
  "images/img_2.jpg",
  "images/Z.jpg",
  "images/sub/x&y;'z.jpg",
  "images/sub-1.jpg",
  "images/grüße/😀.jpg",
  "images/ﬀ.jpg",
  "other/one.txt",
];
const LONG = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 7) % 251));

describe.each(STORES)("$name", ({ start, isInstalled }) => {
  let server: TestStore;
  let store: ObjectStore;

  beforeAll(async () => {
    if (!isInstalled) return;
    server = await start();
    store = openTestStore(server);
    for (const key of KEYS) await server.put(key, key);
    await server.put("long.bin", LONG);
    for (let i = 0; i < 1234; i++) await server.put(`many/${String(i).padStart(5, "0")}`, "x");
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
  });

  async function listed(prefix: string, options: { after?: string } = {}, of = store): Promise<string[]> {
    const paths: string[] = [];
    for await (const page of of.list(`${server.base}/${prefix}`, { sizes: true, ...options })) {
      for (const { path, bytes } of page) {
        expect(bytes, path).toBeGreaterThan(0);
        paths.push(path.slice(server.base.length + 1));
      }
    }
    return paths;
  }

  async function contentOf(path: string, pieces: [number, number][], of = store): Promise<Buffer> {
    const object = await of.open(`${server.base}/${path}`);
    const read: Buffer[] = [];
    for (const [position, length] of pieces) {
      for (let filled = 0; filled < length; ) {
        const buffer = Buffer.alloc(length - filled);
        const bytes = await object.read(buffer, 0, position + filled, length - filled);
        if (bytes === 0) break;
        read.push(buffer.subarray(0, bytes));
        filled += bytes;
      }
    }
    await object.close();
    return Buffer.concat(read);
  }

  const patient = (waits: string[] = []) =>
    new PatientStore(store, {
      onWait: (error) => waits.push(error.message),
      signal: new AbortController().signal,
    });

  it.runIf(isInstalled)("lists the keys with a prefix, in the order of their bytes", async () => {
    const inOrder = (prefix: string) =>
      KEYS.filter((key) => key.startsWith(prefix)).sort((a, b) =>
        Buffer.compare(Buffer.from(a), Buffer.from(b)),
      );
    for (const prefix of ["images/", "images/img_1", "images/sub", "images/gr", "other/one.txt"])
      expect(await listed(prefix), prefix).toEqual(inOrder(prefix));
    expect(await listed("nothing/")).toEqual([]);
  });

  it.runIf(isInstalled)("lists across pages, and from a given key", async () => {
    const all = Array.from({ length: 1234 }, (_, i) => `many/${String(i).padStart(5, "0")}`);
    expect(await listed("many/")).toEqual(all);
    expect(await listed("many/", { after: `${server.base}/many/01100` })).toEqual(all.slice(1101));
    expect(await listed("images/", { after: `${server.base}/images/a b+c%20d.jpg` })).toEqual(
      (await listed("images/")).filter((key) => key !== "images/Z.jpg" && key !== "images/a b+c%20d.jpg"),
    );
  });

  it.runIf(isInstalled)("selects no probes of outputs", async () => {
    for (const key of ["in.jsonl", newProbeName(), `below/${newProbeName()}`])
      await server.put(`probed/${key}`, "x");
    const paths: string[] = [];
    for await (const page of selectFiles(
      store,
      { store_paths: [`${server.base}/probed/`] },
      { sizes: false },
    ))
      paths.push(...page.map(({ path }) => path));
    expect(paths).toEqual([`${server.base}/probed/in.jsonl`]);
  });

  it.runIf(isInstalled)("lists many prefixes in order, each key once", async () => {
    const prefixes = Array.from(
      { length: 13 },
      (_, i) => `${server.base}/many/${String(i).padStart(3, "0")}`,
    );
    const selection = {
      store_paths: [`${server.base}/many/00777`, ...prefixes.reverse(), `${server.base}/many/00777`],
    };
    const paths: string[] = [];
    for await (const page of selectFiles(store, selection, { sizes: false }))
      paths.push(...page.map(({ path }) => path.slice(server.base.length + 1)));
    const numbers = paths.map((path) => Number(path.slice("many/".length)));
    const expected = [777];
    for (let hundred = 12; hundred >= 0; hundred--)
      for (let i = hundred * 100; i < Math.min(1234, hundred * 100 + 100); i++)
        if (i !== 777) expected.push(i);
    expect(numbers).toEqual(expected);
  });

  it.runIf(isInstalled)("reads any range, in sequence or not, up to the end", async () => {
    expect((await contentOf("images/a b+c%20d.jpg", [[0, 100]])).toString()).toBe("images/a b+c%20d.jpg");
    expect(LONG.equals(await contentOf("long.bin", [[0, 5_000_000]]))).toBe(true);
    const steps = Array.from({ length: 60 }, (_, i): [number, number] => [i * 50_000, 50_000]);
    expect(LONG.equals(await contentOf("long.bin", steps))).toBe(true);
    const jumps: [number, number][] = [
      [2_999_990, 100],
      [5, 10],
      [1_000_000, 3],
      [1_000_003, 4],
      [0, 1],
    ];
    expect(await contentOf("long.bin", jumps)).toEqual(
      Buffer.concat(jumps.map(([at, length]) => LONG.subarray(at, at + length))),
    );
    expect(await contentOf("long.bin", [[3_000_000, 10]])).toHaveLength(0);
  });

  it.runIf(isInstalled)("knows size and etag, and rejects an object that was replaced", async () => {
    await server.put("changing", "the first content");
    const path = `${server.base}/changing`;
    const before = await store.open(path);
    expect(before.bytes).toBe(17);
    const again = await store.open(path, before.etag);
    expect(again.etag).toBe(before.etag);
    for (const object of [before, again]) await object.close();
    await server.put("changing", "another content!!");
    const read = async () => {
      const object = await store.open(path, before.etag);
      try {
        if (object.etag !== before.etag) throw new ObjectChanged(path);
        await object.read(Buffer.alloc(10), 0, 0, 10);
      } finally {
        await object.close();
      }
    };
    await expect(read()).rejects.toThrow(ObjectChanged);
  });

  it.runIf(isInstalled)("reports a missing object or bucket", async () => {
    await expect(store.open(`${server.base}/not-there`)).rejects.toThrow(/there is no .*not-there/);
    if (server.scheme === "file") return;
    const missing = store.list(`${server.scheme}://no-such-bucket/images/`, { sizes: false }).next();
    await expect(missing).rejects.toMatchObject({ code: "bucket_not_found" });
    await expect(missing).rejects.toThrow(`${server.scheme}://no-such-bucket/images/`);
  });

  describe.runIf(isInstalled)("behind a network that fails", () => {
    it("resumes at the byte where a connection broke", async () => {
      const { proxy } = server;
      if (proxy === undefined) return;
      for (const afterBytes of [1, 700, 100_000, 1_500_000]) {
        proxy.set({ kind: "cut", afterBytes, times: 4 });
        const content = await contentOf("long.bin", [[0, LONG.length]], patient());
        expect(LONG.equals(content), `${afterBytes}`).toBe(true);
      }
      proxy.set({ kind: "none" });
    }, 60_000);

    it("waits for a store that answers 503 or is unreachable, and resumes its listing", async () => {
      const { proxy } = server;
      if (proxy === undefined) return;
      const waits: string[] = [];
      const keys: string[] = [];
      let isListed = false;
      /** Until it was refused three times, if it is asked at all. */
      const goAway = async () => {
        const before = waits.length;
        proxy.set({ kind: "answer", status: 503 });
        await eventually("the store is missed", () => waits.length - before >= 3 || isListed);
        proxy.set({ kind: "none" });
      };
      const outages = [goAway()];
      for await (const page of patient(waits).list(`${server.base}/many/`, { sizes: false })) {
        keys.push(...page.map(({ path }) => path));
        if (outages.length === 1) outages.push(goAway());
      }
      isListed = true;
      await Promise.all(outages);
      expect(waits.length).toBeGreaterThanOrEqual(3);
      expect(waits[0]).toContain("503");
      expect(keys).toHaveLength(1234);
      expect(new Set(keys).size).toBe(1234);
    }, 60_000);

    it("reports at once, or after a long silence, that the store does not answer, if nobody waits", async () => {
      const { proxy } = server;
      if (proxy === undefined) return;
      for (const fault of [{ kind: "answer", status: 503 }, { kind: "silent" }] as const) {
        proxy.set(fault);
        const both = await Promise.allSettled([
          store.list(`${server.base}/many/`, { sizes: false }).next(),
          store.open(`${server.base}/long.bin`),
        ]);
        const codes = both.map((one) => one.status === "rejected" && (one.reason as { code: string }).code);
        expect(codes, fault.kind).toEqual(["store_unreachable", "store_unreachable"]);
      }
      proxy.set({ kind: "none" });
    }, 90_000);
  });
});
