/** A page of S3's listing, as stores write it. */
import { expect, it } from "vitest";
import { STORE_PAGE_ENTRIES_MAX, STORE_TOKEN_CHARACTERS_MAX } from "../../../src/contracts/limits/stores.ts";
import { PATH_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";
import { parseListing } from "../../../src/object-store/backends/s3-listing.ts";

const page = (body: string) =>
  `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/">${body}</ListBucketResult>`;
const entry = (key: string, size: number) =>
  `<Contents><Key>${key}</Key><LastModified>2026-11-21T13:00:00Z</LastModified><ETag>&quot;e&quot;</ETag><Size>${size}</Size></Contents>`;

it("a page has keys and sizes in order, and the token of the next page", async () => {
  const xml = page(
    `<Name>b</Name><IsTruncated>true</IsTruncated>${entry("a", 1)}${entry("b/c", 20)}<NextContinuationToken>x&amp;y=</NextContinuationToken>`,
  );
  expect(await parseListing(xml)).toEqual({
    objects: [
      { key: "a", bytes: 1 },
      { key: "b/c", bytes: 20 },
    ],
    nextToken: "x&y=",
  });
});

it("an empty page is the last", async () => {
  expect(await parseListing(page("<KeyCount>0</KeyCount>"))).toEqual({ objects: [], nextToken: undefined });
});

it.each([
  ["", "a&amp;b &lt;c&gt; &#39;d&#x27; +%20", "a&b <c> 'd' +%20"],
  ["<EncodingType>url</EncodingType>", "a%26b+%C3%BC%2B%20c%0A", "a&b ü+ c\n"],
])("with %s the key %s is decoded", async (encoding, written, key) => {
  expect((await parseListing(page(encoding + entry(written, 5)))).objects).toEqual([{ key, bytes: 5 }]);
});

const token = (text: string) => page(`<NextContinuationToken>${text}</NextContinuationToken>`);
const url = "<EncodingType>url</EncodingType>";
const entries = (count: number, key: string) => page(entry(key, 1).repeat(count));

it.each([
  ["the longest key, in the longest form", page(url + entry("&#x25;41".repeat(PATH_BYTES_MAX), 1)), 1],
  ["the longest token", token("t".repeat(STORE_TOKEN_CHARACTERS_MAX)), 0],
  [
    "the most entries, with keys of 1,024 characters",
    entries(STORE_PAGE_ENTRIES_MAX, "k".repeat(1024)),
    5000,
  ],
])("a page may have %s", async (_, xml, count) => {
  const { objects } = await parseListing(xml);
  expect(objects.length).toBe(count);
  if (count === 1) expect(objects[0]!.key).toBe("A".repeat(PATH_BYTES_MAX));
});

it.each([
  ["a key of more characters", page(entry("k".repeat(PATH_BYTES_MAX + 1), 1)), /a key of 4104 characters/],
  ["a key that is longer as it is written", page(entry("&#1;".repeat(9000), 1)), /a key of 36000 characters/],
  ["a longer token", token("/".repeat(STORE_TOKEN_CHARACTERS_MAX + 1)), /token of its next page has 16385/],
  ["a token that is longer as it is written", token("&#1;".repeat(5000)), /token of its next page has 20000/],
  ["more entries", entries(STORE_PAGE_ENTRIES_MAX + 1, "k"), /more than 5000 entries/],
  ["keys of more characters", entries(3000, "k".repeat(2048)), /keys of more than 5120000 characters/],
  [
    "a size of more digits",
    page(entry("k", 1).replace("<Size>", `<Size>${"0".repeat(21)}`)),
    /without a key or a size/,
  ],
])("a page may not have %s", async (_, xml, message) => {
  await expect(parseListing(xml)).rejects.toThrow(message);
});
