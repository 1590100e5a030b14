/**
 * Checks that a request's path is in canonical form, which nothing on the way rewrites, before it decides anything. The
 * controller's router decodes and resolves paths. If it read a path differently, a caller could bypass the decisions
 * here.
 */

/** Segments of unreserved characters that do not begin with a dot: nothing in them could be rewritten. */
const PLAIN = /^(?:\/[\w~-][\w.~-]*)+\/?$/;
/** Anything but a path's characters (RFC 3986, `pchar` and `/`). */
const FOREIGN = /[^\w.~!$&'()*+,;=:@/%-]/;
const BROKEN_ENCODING = /%(?![\da-f]{2})/i;
/** Letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 2.3), percent-encoded. */
const NEEDLESS_ENCODING = /%(?:2d|2e|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/i;
const CONTROL = /%(?:[01][\da-f]|7f)/i;
const DOTS = /\/\.\.?(?:\/|$)/;

/** Why a path (without its query) is refused; undefined if it is accepted. */
export function targetFault(path: string): string | undefined {
  if (PLAIN.test(path) || path === "/") return undefined;
  if (!path.startsWith("/")) return "it must begin with /: send the path only, without scheme and host";
  const foreign = FOREIGN.exec(path);
  if (foreign !== null) return `${JSON.stringify(foreign[0])} must be percent-encoded`;
  if (BROKEN_ENCODING.test(path)) return "a % must be followed by two hexadecimal digits";
  if (CONTROL.test(path)) return "it must not contain control characters";
  const needless = NEEDLESS_ENCODING.exec(path);
  if (needless !== null)
    return `write ${decodeURIComponent(needless[0])} as it is, instead of ${needless[0]}`;
  if (path.includes("//")) return "it must not contain an empty segment (//)";
  if (DOTS.test(path)) return "it must not contain the segments . and ..";
  return undefined;
}
