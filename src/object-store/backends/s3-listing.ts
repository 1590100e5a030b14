/** Takes a page of a listing (ListObjectsV2) out of the response before the SDK reads it. The SDK handles errors. */
import type { Readable } from "node:stream";
import type {
  ListObjectsV2Command,
  ListObjectsV2CommandInput,
  ListObjectsV2CommandOutput,
} from "@aws-sdk/client-s3";
import { STORE_PAGE_BYTES_MAX } from "../../contracts/limits/stores.ts";
import type { ListingPage } from "../listing/listing-page.ts";
import { elementOf, isWhole, objectOf, readXmlEntries, tokenOf } from "../listing/listing-xml.ts";
import { StorePages } from "../listing/store-pages.ts";

/** The step of the SDK in which a response becomes an output. */
type Next = (args: { input: ListObjectsV2CommandInput; request: unknown }) => Promise<{
  response: unknown;
  output: ListObjectsV2CommandOutput;
}>;

const PAGES = new StorePages(STORE_PAGE_BYTES_MAX);
const NOTHING = Buffer.from("<ListBucketResult></ListBucketResult>");

/**
 * Takes the page out of the response before the SDK reads it. `onPage` is called before the command's promise resolves.
 */
export function takePage(command: ListObjectsV2Command, onPage: (page: ListingPage) => void): void {
  command.middlewareStack.addRelativeTo(
    (next: Next) => async (args: Parameters<Next>[0]) => {
      const result = await next(args);
      const response = result.response as { statusCode: number; body: Readable };
      if (response.statusCode !== 200) return result;
      onPage(await PAGES.read(response.body, parseListing));
      return { ...result, response: Object.assign(response, { body: NOTHING }) };
    },
    { name: "takePage", relation: "after", toMiddleware: "deserializerMiddleware" },
  );
}

/** Throws if a listing is incomplete. If it counted as the last page, a job would process only a part of its input. */
export async function parseListing(xml: string): Promise<ListingPage> {
  if (!isWhole(xml, "ListBucketResult"))
    throw new Error(`its response to a listing is not a listing: ${JSON.stringify(xml.slice(0, 100))}`);
  // Not every store encodes keys when asked to.
  const isEncoded = xml.includes("<EncodingType>url</EncodingType>");
  const names = { key: "Key", size: "Size", decode: isEncoded ? urlDecoded : (key: string) => key };
  const objects = await readXmlEntries(xml, "Contents", (entry) => objectOf(entry, names));
  const nextToken = tokenOf(xml, "NextContinuationToken");
  if (nextToken === undefined && elementOf(xml, "IsTruncated") === "true")
    throw new Error("its listing continues, but has no NextContinuationToken");
  return { objects, nextToken };
}

/** `EncodingType: url` is the encoding of forms. */
function urlDecoded(key: string): string {
  return /[%+]/.test(key) ? decodeURIComponent(key.replaceAll("+", "%20")) : key;
}
