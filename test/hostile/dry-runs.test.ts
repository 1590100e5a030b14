/** Dry runs that find nothing for long, whose clients leave: they end. */
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { selectFiles } from "../../src/object-store/select/select-files.ts";
import {
  type AnsweringStores,
  answeringStores,
  type Scheme,
  serverOver,
} from "../harness/answering-stores.ts";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT } from "../harness/projects.ts";
import type { TestServer } from "../harness/server.ts";
import { UNWRITTEN } from "../harness/unwritten-store.ts";

describe("a selection that nobody wants any more", () => {
  /** Counts listings; each of them finds nothing, and the tenth aborts. */
  function leaving(abort: () => void): ObjectStore & { listings: number } {
    return {
      listings: 0,
      ...UNWRITTEN,
      parallelListings: () => 1,
      open: () => Promise.reject(new Error("is not opened")),
      async *list() {
        if (++this.listings === 10) abort();
        yield* [];
      },
    };
  }
  const store_paths = Array.from({ length: 1000 }, (_, i) => `file:///in/${i}`);

  it("lists no further prefix, and ends by an error, never as if all were listed", async () => {
    const left = new AbortController();
    const store = leaving(() => left.abort());
    const files = selectFiles(store, { store_paths }, { sizes: false, signal: left.signal });
    await expect(files.next()).rejects.toThrow("left before all files were listed");
    expect(store.listings).toBe(10);
  });

  it("ends though its store does not answer", async () => {
    const left = new AbortController();
    const store: ObjectStore = {
      ...UNWRITTEN,
      parallelListings: () => 8,
      open: () => Promise.reject(new Error("is not opened")),
      list: async function* () {
        await new Promise(() => {});
        yield [];
      },
    };
    const page = selectFiles(store, { store_paths }, { sizes: false, signal: left.signal }).next();
    setImmediate(() => left.abort());
    await expect(page).rejects.toThrow("left before all files were listed");
  });
});

/** A page without a file, after which there is another, by its number. */
const EMPTY: Record<Scheme, (page: number) => string> = {
  s3: (page) =>
    `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${page}</NextContinuationToken></ListBucketResult>`,
  gs: (page) => `{"nextPageToken":"${page}"}`,
  az: (page) => `<EnumerationResults><Blobs /><NextMarker>${page}</NextMarker></EnumerationResults>`,
};

describe.each<Scheme>(["s3", "gs", "az"])("a listing of %s whose pages are all empty", (scheme) => {
  let pages = 0;
  let stores: AnsweringStores;
  const left = new AbortController();
  beforeAll(async () => {
    stores = await answeringStores((_, response) => {
      if (++pages === 10) left.abort();
      response.end(EMPTY[scheme](pages));
    });
  });
  afterAll(() => stores.close());

  it("ends when nobody wants the rest", async () => {
    const listing = stores[scheme].list(`${scheme}://bucket/none`, { sizes: false, signal: left.signal });
    const all = async () => {
      for await (const page of listing) expect(page).toEqual([]);
    };
    await expect(all()).rejects.toThrow();
    // A page may have been requested ahead.
    expect(pages).toBeLessThanOrEqual(11);
  });
});

describe("a dry run", () => {
  let listings = 0;
  const store = createServer((request, response) => {
    listings++;
    const isEndless = request.url!.includes("prefix=endless");
    response.setHeader("content-type", "application/xml");
    response.end(isEndless ? EMPTY.s3(listings) : "<ListBucketResult></ListBucketResult>");
  });
  let server: TestServer;
  beforeAll(async () => {
    server = await serverOver(store);
    await server.start();
    const yaml = "- {name: jobs, kind: BatchAPI, predictor: {path: p.py}}\n";
    server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT }, { wait: false });
  });
  afterAll(async () => {
    await server.stop();
    store.close();
    store.closeAllConnections();
  });

  const post = (address: string, key: string, signal?: AbortSignal) => {
    const file_path_lister = { store_paths: [`s3://bucket/${key}`], batch_size: 1 };
    const body = JSON.stringify({ workers: 1, file_path_lister });
    return server.fetch(address, { method: "POST", body, signal: signal ?? null });
  };

  it.each([
    ["", "/jobs?dryRun=true"],
    [", like the check of a submission", "/jobs"],
  ])("ends when its client leaves, though no file matches%s", async (_, address) => {
    const client = new AbortController();
    const answered = post(address, "endless", client.signal);
    const before = listings;
    await eventually("it lists", () => listings > before + 100);
    client.abort();
    await expect(answered).rejects.toThrow("aborted");
    await eventually("only others list", async () => {
      const before = listings;
      for (let i = 0; i < 3; i++) expect((await post("/jobs?dryRun=true", "other")).status).toBe(400);
      return listings === before + 3;
    });
    expect(server.stderr).not.toMatch(/reached no boundary|internal_error/);
    const { jobs } = (await (await server.fetch("/jobs")).json()) as { jobs: unknown[] };
    expect(jobs).toEqual([]);
  });
});
