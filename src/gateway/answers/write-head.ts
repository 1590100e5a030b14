/** Writes the head of a predictor's response, with all headers that repeat. */
import { type ServerResponse, validateHeaderName, validateHeaderValue } from "node:http";

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

function* pairs(headers: readonly string[]): Generator<[name: string, value: string]> {
  for (let at = 0; at < headers.length; at += 2) yield [headers[at]!, headers[at + 1]!];
}
