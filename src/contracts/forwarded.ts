/**
 * What a gateway tells the controller about a request that it passes on. All of it goes in one header, encoded: subjects of
 * tokens, Host headers and settings may hold any character, and a header holds Latin-1 only.
 */
import type { Grant, KeyRate } from "./keys.ts";

export const FORWARDED_HEADER = "x-quern-forwarded";

/** `main` is `--listen`, `control` is `--control-listen`, `inside` is where user code calls other APIs. */
export type ListenerName = "main" | "control" | "inside";

export interface Forwarded {
  /** The address by which the client reached the gateway, for addresses in answers. */
  baseUrl: string;
  listener: ListenerName;
  /** The address of the client's socket, by which room for bodies is shared where there is no key. */
  client?: string | undefined;
  /** The request began on this machine. */
  isLocal: boolean;
  /** Whose token or signature the gateway has verified. */
  holder?:
    | { id: string; grants: readonly Grant[]; rate: KeyRate | null; expiresMs?: number | undefined }
    | undefined;
  /** The API's own path, for addresses in answers. */
  endpoint?: string | undefined;
}

/** A request that no gateway describes may do what anybody may do who is elsewhere. */
const FROM_NOBODY: Forwarded = { baseUrl: "http://localhost", listener: "main", isLocal: false };

export function encodeForwarded(forwarded: Forwarded): string {
  return Buffer.from(JSON.stringify(forwarded)).toString("base64url");
}

export function decodeForwarded(header: string | undefined): Forwarded {
  if (header === undefined) return FROM_NOBODY;
  return JSON.parse(Buffer.from(header, "base64url").toString()) as Forwarded;
}
