/**
 * Checks how many headers and query parameters a request has, and those that decide where it ends and for whom it is (RFC 9112, sections 3.2
 * and 6.1). Node accepts more: it leaves out all beyond 2,000, and drops every Host header but the first. It decodes
 * only the last of several transfer codings, and one of HTTP/1.0. It parses HTTP/0.9 and HTTP/2.0 like HTTP/1.1.
 */
import type { IncomingMessage } from "node:http";
import { ServiceError } from "../../contracts/errors.ts";
import { HEADERS_OF_A_REQUEST_MAX, QUERY_PARAMETERS_MAX } from "../../contracts/limits/requests.ts";

const HOST = "host";
const CODING = "transfer-encoding";

/**
 * Why a request is refused; undefined if it is accepted. On the hot path. Reads the raw headers, because Node leaves
 * out of `headers` what it drops.
 */
export function headFault({
  rawHeaders,
  httpVersion,
  url,
}: Pick<IncomingMessage, "rawHeaders" | "httpVersion" | "url">): ServiceError | undefined {
  if (httpVersion[0] !== "1") return unknownVersion(httpVersion);
  if (rawHeaders.length > 2 * HEADERS_OF_A_REQUEST_MAX) return tooMany(rawHeaders.length / 2);
  if (url!.length > QUERY_PARAMETERS_MAX && hasMany(url!)) return manyParameters();
  let hosts = 0;
  let coding: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
    else if (name.length === CODING.length && name.toLowerCase() === CODING)
      coding = coding === undefined ? rawHeaders[at + 1]! : `${coding}, ${rawHeaders[at + 1]!}`;
  }
  if (hosts > 1 || (hosts === 0 && httpVersion !== "1.0"))
    return new ServiceError("invalid_request", `the request has ${hosts} Host headers; send exactly one`);
  return coding === undefined ? undefined : codingFault(coding, httpVersion);
}

/** Reading each costs a microsecond in several places, and 16 KiB hold 16,000. */
function hasMany(url: string): boolean {
  let at = url.indexOf("?");
  for (let count = 1; at >= 0 && count <= QUERY_PARAMETERS_MAX; count++) at = url.indexOf("&", at + 1);
  return at >= 0;
}

function manyParameters(): ServiceError {
  const message = `the query has more than ${QUERY_PARAMETERS_MAX} parameters; send fewer, or put them into the body`;
  return new ServiceError("invalid_request", message);
}

/** HTTP/1.0 has no transfer codings: a proxy between may take the body to end elsewhere. */
function codingFault(coding: string, httpVersion: string): ServiceError | undefined {
  const isOld = httpVersion < "1.1";
  if (!isOld && coding.toLowerCase() === "chunked") return undefined;
  const message = isOld
    ? `HTTP/${httpVersion} has no Transfer-Encoding; use HTTP/1.1, or Content-Length`
    : `Transfer-Encoding ${JSON.stringify(coding)} is not supported; use \`chunked\` alone, or Content-Length`;
  return new ServiceError("transfer_encoding_not_supported", message);
}

/** Node's parser takes 0.9 and 2.0 for HTTP/1; a proxy between may not. */
function unknownVersion(httpVersion: string): ServiceError {
  const message = `HTTP/${httpVersion} is not supported on this connection; use HTTP/1.1`;
  return new ServiceError("http_version_not_supported", message);
}

function tooMany(count: number): ServiceError {
  const message = `the request has ${count} headers; send at most ${HEADERS_OF_A_REQUEST_MAX}`;
  return new ServiceError("too_many_headers", message);
}
