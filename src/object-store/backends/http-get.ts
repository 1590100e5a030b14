/**
 * GET that returns the bytes as they were sent. If the body breaks off, its stream emits an error. (fetch
 * decompresses.)
 */
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
