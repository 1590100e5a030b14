/** Objects of S3 without an ETag: versitygw has none of files that were put into its directory beside it. */
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ObjectChanged, type ObjectStore } from "../../../src/object-store/object-store.ts";
import { isS3Installed, openTestStore, startS3, type TestS3 } from "../../harness/stores.ts";

const FIRST = new Date("2026-01-02T03:04:05Z");
const LATER = new Date("2026-01-02T03:04:06Z");

describe.runIf(isS3Installed)("an object without an ETag", () => {
  let server: TestS3;
  let store: ObjectStore;
  let file: string;

  beforeAll(async () => {
    server = await startS3();
    store = openTestStore(server);
    file = join(server.directory, "lines.jsonl");
  });
  afterAll(() => server.stop());

  const write = (text: string, changed: Date) => {
    writeFileSync(file, text);
    utimesSync(file, changed, changed);
  };
  async function read(etag?: string): Promise<[content: string, etag: string]> {
    const object = await store.open(`${server.base}/lines.jsonl`, etag);
    const into = Buffer.alloc(100);
    const bytes = await object.read(into, 0, 0, into.length);
    await object.close();
    return [into.toString("utf8", 0, bytes), object.etag];
  }

  it("has the time of its last change as its version", async () => {
    write("first", FIRST);
    const [content, etag] = await read();
    expect([content, etag]).toEqual(["first", "modified 2026-01-02T03:04:05.000Z"]);
    expect(await read(etag)).toEqual(["first", etag]);
    write("later", LATER);
    await expect(read(etag)).rejects.toThrow(ObjectChanged);
    expect((await read())[0]).toBe("later");
  });
});
