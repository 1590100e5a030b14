/**
 * The page that is open, as the browser's address says it: a path below `/-/ui/` and filters in the query. So every
 * view can be bookmarked, sent to others, and reached by the back button.
 */
import { signal } from "@preact/signals";
import { pagesRoot } from "../server/root.ts";
import { type Address, addressOf } from "./read-address.ts";

const here = () => addressOf(location.pathname, location.search, pagesRoot);

export const address = signal<Address>(here());

/** The link to a page: `pageUrl(["jobs"], { status: "status_running" })`. */
export function pageUrl(
  segments: readonly string[],
  query: Record<string, string | undefined> | URLSearchParams = {},
): string {
  const search = query instanceof URLSearchParams ? query : new URLSearchParams(given(query));
  const text = search.toString();
  return `${pagesRoot}/${segments.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function given(query: Record<string, string | undefined>): [string, string][] {
  return Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value] as [string, string]],
  );
}

/** Opens another page. `replace`: the back button leaves out the present one. */
export function open(url: string, { replace = false } = {}): void {
  const isOtherPage = new URL(url, location.href).pathname !== location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  address.value = here();
  if (isOtherPage) {
    scrollTo(0, 0);
    // A screen reader hears the new page's title.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
  }
}

/** Changes parameters of the present page. An undefined or empty value removes one. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { segments, query } = address.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  open(pageUrl(segments, next), { replace: true });
}

/** Follows links within the pages without a new load of the page, and the back button. */
export function followLinks(): void {
  addEventListener("popstate", () => (address.value = here()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest("a");
    if (!link || event.defaultPrevented || event.button !== 0 || link.target !== "") return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.origin !== location.origin || !link.pathname.startsWith(`${pagesRoot}/`)) return;
    event.preventDefault();
    open(link.href);
  });
}
