/**
 * A page of a listing (ListObjectsV2), read straight from its XML. The SDK's own reading makes an object with a date, an etag and
 * more of each key: 10 of 13 µs a key, and most of the memory. Errors are left to it.
 */
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type {
  ListObjectsV2Command,
  ListObjectsV2CommandInput,
  ListObjectsV2CommandOutput,
} from "@aws-sdk/client-s3";
import { STORE_SILENCE_MS } from "../contracts/limits.ts";

export interface ListingPage {
  objects: { key: string; bytes: number }[];
  /** Undefined on the last page. */
  nextToken: string | undefined;
}

/** The step of the SDK in which an answer becomes an output. */
type Next = (args: { input: ListObjectsV2CommandInput; request: unknown }) => Promise<{
  response: unknown;
  output: ListObjectsV2CommandOutput;
}>;

const NOTHING = Buffer.from("<ListBucketResult></ListBucketResult>");
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Takes the page out of the answer before the SDK reads it; `onPage` is called before the command's promise resolves. */
export function takePage(command: ListObjectsV2Command, onPage: (page: ListingPage) => void): void {
  command.middlewareStack.addRelativeTo(
    (next: Next) => async (args: Parameters<Next>[0]) => {
      const result = await next(args);
      const response = result.response as { statusCode: number; body: Readable };
      if (response.statusCode !== 200) return result;
      onPage(parseListing(await textInTime(response.body)));
      return { ...result, response: Object.assign(response, { body: NOTHING }) };
    },
    { name: "takePage", relation: "after", toMiddleware: "deserializerMiddleware" },
  );
}

async function textInTime(body: Readable): Promise<string> {
  const silence = new Error(`nothing came for ${STORE_SILENCE_MS / 1000} s`);
  const timer = setTimeout(() => body.destroy(silence), STORE_SILENCE_MS);
  try {
    return await text(body);
  } finally {
    clearTimeout(timer);
  }
}

export function parseListing(xml: string): ListingPage {
  // Not every store does what it is asked for.
  const isEncoded = xml.includes("<EncodingType>url</EncodingType>");
  const objects: ListingPage["objects"] = [];
  for (let at = xml.indexOf("<Contents>"); at >= 0; ) {
    const next = xml.indexOf("<Contents>", at + 1);
    const entry = xml.slice(at, next < 0 ? xml.length : next);
    const key = unescaped(elementOf(entry, "Key")!);
    objects.push({ key: isEncoded ? urlDecoded(key) : key, bytes: Number(elementOf(entry, "Size")) });
    at = next;
  }
  const token = elementOf(xml, "NextContinuationToken");
  return { objects, nextToken: token === undefined ? undefined : unescaped(token) };
}

function elementOf(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`);
  if (start < 0) return undefined;
  return xml.slice(start + name.length + 2, xml.indexOf("</", start));
}

function unescaped(xmlText: string): string {
  if (!xmlText.includes("&")) return xmlText;
  return xmlText.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (_, hex, decimal, name) =>
    name === undefined
      ? String.fromCodePoint(hex ? Number.parseInt(hex, 16) : Number(decimal))
      : ENTITIES[name]!,
  );
}

/** `EncodingType: url` is the encoding of forms. */
function urlDecoded(key: string): string {
  return /[%+]/.test(key) ? decodeURIComponent(key.replaceAll("+", "%20")) : key;
}
