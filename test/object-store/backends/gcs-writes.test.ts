/** Resumable uploads to Google, whose requests and responses are lost at any byte. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { STORE_PIECE_BYTES } from "../../../src/contracts/limits/stores.ts";
import { UploadLost } from "../../../src/object-store/object-store.ts";
import { PatientStore } from "../../../src/object-store/patient-store.ts";
import { type AnsweringStores, answeringStores } from "../../harness/answering-stores.ts";
import { eventually } from "../../harness/eventually.ts";
import { type Fate, ResumableStore } from "../../harness/resumable-store.ts";

const QUARTER = 256 * 1024;
const PATH = "gs://bucket/out";

describe("a resumable upload", () => {
  let google: ResumableStore;
  let stores: AnsweringStores;
  beforeAll(async () => {
    stores = await answeringStores((request, response) => google.answer(request, response));
  });
  beforeEach(() => {
    google = new ResumableStore();
  });
  afterAll(() => stores.close());

  const patient = () =>
    new PatientStore(stores.gs, { onWait: () => {}, signal: new AbortController().signal });

  async function upload(content: Buffer) {
    const writing = await patient().create(PATH);
    for (let at = 0; at < content.length; at += 3_000_000)
      await writing.write(content.subarray(at, at + 3_000_000));
    return writing.complete();
  }

  it.each<[string, number, Fate[]]>([
    ["nothing is lost", 0, []],
    ["a piece does not arrive", 0, ["answered", { kept: 0 }]],
    ["a part of a piece arrives", 0, ["answered", { kept: 3 * QUARTER }, { kept: QUARTER }, { kept: 0 }]],
    ["the response to a piece is lost", 0, ["lost answer", "lost answer", "lost answer"]],
    ["the response to the last piece is lost", 0, ["answered", "answered", "lost answer"]],
    [
      "a part of the last piece arrives",
      3 * QUARTER,
      ["answered", "answered", { kept: QUARTER }, "lost answer"],
    ],
    ["the object ends with a piece", STORE_PIECE_BYTES - 5, ["answered", "answered", "lost answer"]],
  ])("has every byte once when %s", async (_, more, fates) => {
    const content = Buffer.from(
      Array.from({ length: 2 * STORE_PIECE_BYTES + 5 + more }, (_, i) => (i * 7 + (i >> 13)) % 251),
    );
    google.fates = [...fates];
    const { etag } = await upload(content);
    expect(google.fates).toEqual([]);
    const found = google.objects.get("out")!;
    expect(found.content.equals(content)).toBe(true);
    expect(String(found.generation)).toBe(etag);
    // Not the whole object again.
    expect(google.received).toBeLessThanOrEqual(content.length + fates.length * STORE_PIECE_BYTES);
  });

  it("is removed by abort(), by its address alone", async () => {
    const writing = await stores.gs.create(PATH);
    await writing.write(Buffer.alloc(2 * STORE_PIECE_BYTES));
    await writing.abort();
    await writing.abort();
    expect(google.sessions.size).toBe(0);
    expect(google.objects.size).toBe(0);
  });

  it("that arrives damaged is removed, and is an error", async () => {
    google.damages = true;
    await expect(upload(Buffer.alloc(STORE_PIECE_BYTES + 1))).rejects.toThrow("other bytes");
    expect(google.objects.size).toBe(0);
  });

  it("that the store has forgotten cannot be continued", async () => {
    const writing = await patient().create(PATH);
    await writing.write(Buffer.alloc(STORE_PIECE_BYTES + 1));
    await eventually("the first piece has arrived", () => google.received === STORE_PIECE_BYTES);
    google.sessions.clear();
    const more = Buffer.alloc(3 * STORE_PIECE_BYTES);
    await expect(writing.write(more).then(() => writing.complete())).rejects.toThrow(UploadLost);
  });
});
