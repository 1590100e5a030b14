/** GET with the bytes as they are on the wire; a body that breaks off is an error of its stream. (fetch decompresses.) */
import http, { type IncomingMessage } from "node:http";
import https from "node:https";

export function get(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { request } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    request(url, { headers, signal }, resolve).on("error", reject).end();
  });
}
