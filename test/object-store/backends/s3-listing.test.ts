/** A page of S3's listing, as stores write it. */
import { expect, it } from "vitest";
import { parseListing } from "../../../src/object-store/backends/s3-listing.ts";

const page = (body: string) =>
  `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/">${body}</ListBucketResult>`;
const entry = (key: string, size: number) =>
  `<Contents><Key>${key}</Key><LastModified>2026-11-21T13:00:00Z</LastModified><ETag>&quot;e&quot;</ETag><Size>${size}</Size></Contents>`;

it("a page has keys and sizes in order, and the token of the next page", () => {
  const xml = page(
    `<Name>b</Name><IsTruncated>true</IsTruncated>${entry("a", 1)}${entry("b/c", 20)}<NextContinuationToken>x&amp;y=</NextContinuationToken>`,
  );
  expect(parseListing(xml)).toEqual({
    objects: [
      { key: "a", bytes: 1 },
      { key: "b/c", bytes: 20 },
    ],
    nextToken: "x&y=",
  });
});

it("an empty page is the last", () => {
  expect(parseListing(page("<KeyCount>0</KeyCount>"))).toEqual({ objects: [], nextToken: undefined });
});

it.each([
  ["", "a&amp;b &lt;c&gt; &#39;d&#x27; +%20", "a&b <c> 'd' +%20"],
  ["<EncodingType>url</EncodingType>", "a%26b+%C3%BC%2B%20c%0A", "a&b ü+ c\n"],
])("with %s the key %s is decoded", (encoding, written, key) => {
  expect(parseListing(page(encoding + entry(written, 5))).objects).toEqual([{ key, bytes: 5 }]);
});
