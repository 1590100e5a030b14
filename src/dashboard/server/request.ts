/**
 * Requests to the server's public HTTP interface. The cookie of the session goes with them. It counts only beside a
 * header that no other site can set, so a foreign page cannot act for the person.
 */
import { parseExact } from "./exact-json.ts";
import { Problem } from "./problem.ts";
import { root } from "./root.ts";

export interface Asked {
  method?: "GET" | "POST" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Sends a request to a path such as `/-/apis`. Throws a Problem for every response that is no success. */
export async function send(
  path: string,
  { method = "GET", body, headers, signal }: Asked = {},
): Promise<Response> {
  const response = await fetch(root + path, {
    method,
    headers: {
      "x-quern-dashboard": "1",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    credentials: "same-origin",
    redirect: "error",
    signal: signal ?? null,
  }).catch((error: Error) => {
    throw error.name === "AbortError" ? error : Problem.unreachable();
  });
  if (response.ok) return response;
  throw await Problem.of(response);
}

/** The JSON of a response. */
export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  const response = await send(path, asked);
  return parseExact(await response.text()) as T;
}

/** A path with parameters; those that are undefined or empty are left out. */
export function withQuery(
  path: string,
  query: Record<string, string | number | readonly string[] | undefined>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== "") search.append(name, String(one));
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A segment of a path. */
export const segment = encodeURIComponent;
