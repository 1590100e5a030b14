/** Writes a predictor's response: the head with all headers that repeat, and the body. */
import { type ServerResponse, validateHeaderName, validateHeaderValue } from "node:http";
import { READ_AT_ONCE_BYTES_MAX } from "../../contracts/limits/frames.ts";

/**
 * `headers` are names and values in turn. Once the gateway has set a header of its own, Node keeps only the last of
 * several with one name. A predictor's header replaces the gateway's of the same name; `Vary` is sent from both.
 * Throws if a header cannot be sent; then none is set.
 */
export function writeHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  if (response.getHeaderNames().length === 0) {
    response.writeHead(status, [...headers]);
    return;
  }
  for (const [name, value] of pairs(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  const added = new Set(["vary"]);
  for (const [name, value] of pairs(headers)) {
    const lower = name.toLowerCase();
    if (added.has(lower)) response.appendHeader(name, value);
    else response.setHeader(name, value);
    added.add(lower);
  }
  response.writeHead(status);
}

/**
 * The head must be written. A small body becomes a string, because Node joins strings: in Latin-1 each byte is one
 * character. Node's `end(body)` makes two parts of it, of which the second one is empty, and a write of several parts
 * takes longer. So the first part leaves before the end. A larger body is not copied: the copy costs more than a second
 * part.
 */
export function sendBody(response: ServerResponse, body: Buffer): void {
  if (body.length > READ_AT_ONCE_BYTES_MAX) {
    response.end(body);
    return;
  }
  response.write(body.toString("latin1"), "latin1");
  // Missing while an earlier response of the connection has its turn.
  response.socket?.uncork();
  response.end();
}

function* pairs(headers: readonly string[]): Generator<[name: string, value: string]> {
  for (let at = 0; at < headers.length; at += 2) yield [headers[at]!, headers[at + 1]!];
}
