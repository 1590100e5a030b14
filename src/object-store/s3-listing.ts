/**
 * A page of a listing (ListObjectsV2), read straight from its XML. The SDK's own reading makes an object with a date, an etag and
 * more of each key: 10 of 13 µs a key, and most of the memory. Errors are left to it.
 */
import type { Readable } from "node:stream";
import type {
  ListObjectsV2Command,
  ListObjectsV2CommandInput,
  ListObjectsV2CommandOutput,
} from "@aws-sdk/client-s3";
import { PATH_BYTES_MAX, STORE_PAGE_BYTES_MAX } from "../contracts/limits.ts";
import { textOfStore } from "./text-of-store.ts";

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
      onPage(parseListing(await textOfStore(response.body, STORE_PAGE_BYTES_MAX)));
      return { ...result, response: Object.assign(response, { body: NOTHING }) };
    },
    { name: "takePage", relation: "after", toMiddleware: "deserializerMiddleware" },
  );
}

/** What is no whole listing must not pass for the last page: a job would count a part of its input for all of it. */
export function parseListing(xml: string): ListingPage {
  if (!/<ListBucketResult[\s>]/.test(xml) || !xml.trimEnd().endsWith("</ListBucketResult>"))
    throw new Error(`it answered a listing with something else: ${JSON.stringify(xml.slice(0, 100))}`);
  // Not every store does what it is asked for.
  const isEncoded = xml.includes("<EncodingType>url</EncodingType>");
  const objects: ListingPage["objects"] = [];
  for (let at = xml.indexOf("<Contents>"); at >= 0; ) {
    const next = xml.indexOf("<Contents>", at + 1);
    const entry = xml.slice(at, next < 0 ? xml.length : next);
    objects.push(objectOf(entry, isEncoded));
    at = next;
  }
  const token = elementOf(xml, "NextContinuationToken");
  if (token === undefined && elementOf(xml, "IsTruncated") === "true")
    throw new Error("its listing goes on, but has no NextContinuationToken");
  return { objects, nextToken: token === undefined ? undefined : unescaped(token) };
}

function objectOf(entry: string, isEncoded: boolean): { key: string; bytes: number } {
  const written = elementOf(entry, "Key");
  const bytes = Number(elementOf(entry, "Size"));
  if (written === undefined || !Number.isSafeInteger(bytes) || bytes < 0)
    throw new Error(
      `its listing has an entry without a key or a size: ${JSON.stringify(entry.slice(0, 200))}`,
    );
  const key = unescaped(written);
  const object = { key: isEncoded ? urlDecoded(key) : key, bytes };
  if (object.key.length <= PATH_BYTES_MAX) return object;
  throw new Error(
    `its listing has a key of ${object.key.length} characters: ${JSON.stringify(key.slice(0, 100))}`,
  );
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
      : entity(name),
  );
}

function entity(name: string): string {
  const character = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
  if (character === undefined) throw new Error(`its listing has &${name};, which XML does not know`);
  return character;
}

/** `EncodingType: url` is the encoding of forms. */
function urlDecoded(key: string): string {
  return /[%+]/.test(key) ? decodeURIComponent(key.replaceAll("+", "%20")) : key;
}
