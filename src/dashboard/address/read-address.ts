/** Reads the page and its filters from an address. Pure. */

export interface Address {
  /** The segments of the path, decoded: `["jobs", "classifier", "01…"]`. */
  segments: readonly string[];
  query: URLSearchParams;
}

/** Reads an address below `base`. */
export function addressOf(pathname: string, search: string, base: string): Address {
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  const segments = path.split("/").filter((part) => part !== "");
  return { segments: segments.map(decoded), query: new URLSearchParams(search) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
