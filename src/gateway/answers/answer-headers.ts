/** Which headers of a predictor's response leave the gateway, and which responses have a body. Pure. */

/** Headers that only the gateway sets, or that are for one hop only. A predictor's values for them are dropped. */
const NOT_THE_PREDICTORS = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-content-type-options",
  "x-request-id",
]);
/**
 * Responses with these statuses end after the head and have no length. A client that believed a length would wait for
 * the body (RFC 9110, section 8.6).
 */
export const WITHOUT_BODY = new Set([204, 304]);

/**
 * A server without a key answers GET to any page. So no page of another origin may embed an answer, as a script or a
 * style sheet, nor learn from that whether there is one. Pages that CORS allows may still read it.
 */
export const NOT_EMBEDDED = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

/**
 * Types that no browser shows as a page, whose scripts would run as the server's own. Everything else counts as one:
 * browsers know more types of pages than servers do, and read a list of types, or one with odd characters behind it, in
 * ways of their own (https://fetch.spec.whatwg.org/#concept-header-extract-mime-type).
 */
const NO_PAGE =
  /^(?:application\/(?:(?:[\w.-]+\+)?json|x-ndjson|octet-stream|pdf|zip|gzip)|text\/(?:plain|csv|event-stream)|image\/(?:png|jpeg|gif|webp|avif|bmp)|(?:audio|video)\/[\w.-]+)(?:; ?[\w-]+="?[\w.-]+"?)*$/i;
const NOT_GUESSED = ["x-content-type-options", "nosniff"];
/**
 * A browser shows such a page with an origin of its own: its scripts run, but not with the session of somebody who is
 * signed in to the dashboard (https://www.w3.org/TR/CSP3/#directive-sandbox). Programs do not notice it.
 */
const APART = ["content-security-policy", "sandbox allow-scripts allow-forms allow-popups allow-downloads"];

/** Headers as `writeHead` takes them if names may repeat: names and values in turn. */
export function answerHeaders(
  headers: readonly [string, string][],
  requestId: string,
  keepsLength: boolean,
): string[] {
  const kept = headers.filter(([name]) => {
    const lower = name.toLowerCase();
    return !NOT_THE_PREDICTORS.has(lower) || (keepsLength && lower === "content-length");
  });
  const own = isPage(kept) ? [...NOT_GUESSED, ...APART] : NOT_GUESSED;
  return [...kept.flat(), ...own, "x-request-id", requestId];
}

/** Without a type, or with several, a browser may show it as a page. */
function isPage(headers: readonly [string, string][]): boolean {
  const types = headers.filter(([name]) => name.toLowerCase() === "content-type");
  return types.length !== 1 || !NO_PAGE.test(types[0]![1]);
}
