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
  "x-request-id",
]);
/**
 * Responses with these statuses end after the head and have no length. A client that believed a length would wait for
 * the body (RFC 9110, section 8.6).
 */
export const WITHOUT_BODY = new Set([204, 304]);

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
  return [...kept.flat(), "x-request-id", requestId];
}
