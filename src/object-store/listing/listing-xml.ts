/**
 * Reads pages of listings straight from their XML, in one pass for any content. The clients' own readers make an object
 * with a date, an etag and more of each key. That takes 10 of 13 µs a key, and most of the memory.
 */
import { STORE_KEY_WRITTEN_MAX, STORE_SMALL_PAGE_BYTES } from "../../contracts/limits/stores.ts";
import { PATH_BYTES_MAX } from "../../contracts/limits/submissions.ts";
import { checkedToken, type ListedKey, readEntries } from "./listing-page.ts";

/** The digits of a safe integer, and some leading zeros. */
const SIZE_DIGITS_MAX = 20;

/** The names of an entry's elements. */
interface Names {
  key: string;
  size: string;
  decode: (key: string) => string;
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Whether this is a complete document with this root. */
export function isWhole(xml: string, root: string): boolean {
  return new RegExp(`<${root}[\\s>]`).test(xml) && xml.trimEnd().endsWith(`</${root}>`);
}

/** Reads the entries in slices. */
export function readXmlEntries(
  xml: string,
  name: string,
  read: (entry: string) => ListedKey,
): Promise<ListedKey[]> {
  const isLarge = xml.length > STORE_SMALL_PAGE_BYTES;
  return readEntries(entriesOf(xml, name), (entry) => (isLarge ? withOwnKey(read(entry)) : read(entry)));
}

/** A key that is a part of the page's text keeps all of it in memory. */
function withOwnKey({ key, bytes }: ListedKey): ListedKey {
  return { key: JSON.parse(JSON.stringify(key)) as string, bytes };
}

/** The parts that begin with this element, each up to the next one. */
function* entriesOf(xml: string, name: string): Generator<string> {
  const start = `<${name}>`;
  for (let at = xml.indexOf(start); at >= 0; ) {
    const next = xml.indexOf(start, at + 1);
    yield xml.slice(at, next < 0 ? xml.length : next);
    at = next;
  }
}

export function objectOf(entry: string, names: Names): ListedKey {
  const written = elementOf(entry, names.key);
  const size = elementOf(entry, names.size) ?? "";
  const bytes = size === "" || size.length > SIZE_DIGITS_MAX ? Number.NaN : Number(size);
  if (written === undefined || !Number.isSafeInteger(bytes) || bytes < 0)
    throw new Error(
      `its listing has an entry without a key or a size: ${JSON.stringify(entry.slice(0, 200))}`,
    );
  if (written.length > STORE_KEY_WRITTEN_MAX) throw tooLong(written);
  const key = names.decode(unescaped(written));
  if (key.length > PATH_BYTES_MAX) throw tooLong(key);
  return { key, bytes };
}

function tooLong(key: string): Error {
  return new Error(`its listing has a key of ${key.length} characters: ${JSON.stringify(key.slice(0, 100))}`);
}

/** Undefined if there is no such element. Throws if the token is longer than any store's. */
export function tokenOf(xml: string, name: string): string | undefined {
  const token = elementOf(xml, name);
  return token === undefined ? undefined : unescaped(checkedToken(token));
}

export function elementOf(xml: string, name: string): string | undefined {
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
  if (character === undefined) throw new Error(`its listing has &${name};, which XML does not define`);
  return character;
}
