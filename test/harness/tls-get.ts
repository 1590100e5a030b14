import { readFileSync } from "node:fs";
import { get } from "node:https";
import { text } from "node:stream/consumers";

/** A request over TLS that trusts one certificate. */
export function tlsGet(
  url: string,
  cert: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) =>
    get(url, { ca: readFileSync(cert), agent: false, headers }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode!, body }), reject);
    }).on("error", reject),
  );
}
