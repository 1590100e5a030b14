/**
 * Where the server is, seen from this page: a proxy may put the server below a path. The page's own script says it,
 * because it is at `<root>/-/ui/`.
 */

/** The path before `/-/ui/`: empty, or such as `/models`. */
export function rootOf(scriptUrl: string): string {
  const { pathname } = new URL(scriptUrl);
  return pathname.slice(0, pathname.lastIndexOf("/-/ui/"));
}

export const root = rootOf(import.meta.url);
export const pagesRoot = `${root}/-/ui`;
