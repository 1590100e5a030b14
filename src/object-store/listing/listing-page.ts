/** What a page of a listing may have, whatever a store sends. */
import { ServiceError } from "../../contracts/errors.ts";
import {
  STORE_PAGE_ENTRIES_MAX,
  STORE_PAGE_KEYS_CHARACTERS_MAX,
  STORE_TOKEN_CHARACTERS_MAX,
} from "../../contracts/limits/stores.ts";
import { bucketAndKey } from "../store-path.ts";
import { LISTING_SLICES } from "./listing-slices.ts";

export interface ListedKey {
  key: string;
  bytes: number;
}

export interface ListingPage {
  objects: ListedKey[];
  /** Undefined on the last page. */
  nextToken: string | undefined;
}

/** Reads the entries of a page in slices. Throws if there are more of them, or longer ones, than any store sends. */
export async function readEntries<T>(
  entries: Iterable<T>,
  read: (entry: T) => ListedKey,
): Promise<ListedKey[]> {
  const objects: ListedKey[] = [];
  let characters = 0;
  for (const entry of entries) {
    if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
    const object = read(entry);
    characters += object.key.length;
    objects.push(object);
    if (objects.length <= STORE_PAGE_ENTRIES_MAX && characters <= STORE_PAGE_KEYS_CHARACTERS_MAX) continue;
    throw new Error(
      `a page of its listing has more than ${STORE_PAGE_ENTRIES_MAX} entries, or keys of more than ${STORE_PAGE_KEYS_CHARACTERS_MAX} characters`,
    );
  }
  return objects;
}

/**
 * The token of the page after this one. Throws if it is the one that this page was asked for with: the listing would
 * never end.
 */
export function tokenAfter(
  sent: string | undefined,
  { nextToken }: Pick<ListingPage, "nextToken">,
  path: string,
): string | undefined {
  if (nextToken === undefined || nextToken !== sent) return nextToken;
  const cure = "check its software, or copy the files to another store";
  const message = `the store of ${path} continues its listing at the same place again, so it would never end; ${cure}`;
  throw new ServiceError("invalid_request", message);
}

/** Throws if a store lists what was not asked for: a job would take what its submission did not name. */
export function assertBelow(prefix: string, objects: readonly ListedKey[]): void {
  const { key: beginning } = bucketAndKey(prefix);
  const other = objects.find(({ key }) => !key.startsWith(beginning));
  if (other === undefined) return;
  const cure = "check its software, or copy the files to another store";
  const name = JSON.stringify(other.key.slice(0, 200));
  throw new ServiceError(
    "invalid_request",
    `the store lists ${name}, which does not begin as ${prefix} does; ${cure}`,
  );
}

/** The token of the next page, as the store wrote it. Throws if it is longer than any store's. */
export function checkedToken(token: string): string {
  if (token.length <= STORE_TOKEN_CHARACTERS_MAX) return token;
  throw new Error(
    `the token of its next page has ${token.length} characters, more than ${STORE_TOKEN_CHARACTERS_MAX}`,
  );
}
