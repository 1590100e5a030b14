/**
 * What a gateway tells the controller about a request that it forwards. One encoded header holds all of it: subjects of
 * tokens, Host headers and settings may hold any character, and a header only Latin-1.
 */
import type { KeyRate, Permission } from "./keys.ts";

export const FORWARDED_HEADER = "x-quern-forwarded";

/** `main` is `--listen`, `control` is `--control-listen`, and `inside` takes the calls of user code to other APIs. */
export type ListenerName = "main" | "control" | "inside";

export interface Forwarded {
  /** The address by which the client reached the gateway, for addresses in responses. */
  baseUrl: string;
  /** The same without `--public-url`, if that differs. */
  reachedUrl?: string | undefined;
  listener: ListenerName;
  /** The client's address. It is the sender of a request without a key: whose share it takes, whose turn it has. */
  client?: string | undefined;
  /** The request began on this machine. */
  isLocal: boolean;
  /** Who sent the request, if the gateway has verified a token or a signature. */
  principal?:
    | { id: string; permissions: readonly Permission[]; rate: KeyRate | null; expiresMs?: number | undefined }
    | undefined;
  /** The API's path, for addresses in responses. */
  endpoint?: string | undefined;
}

/** A request that no gateway describes has only the rights of an anonymous remote caller. */
const FROM_NOBODY: Forwarded = { baseUrl: "http://localhost", listener: "main", isLocal: false };

export function encodeForwarded(forwarded: Forwarded): string {
  return Buffer.from(JSON.stringify(forwarded)).toString("base64url");
}

export function decodeForwarded(header: string | undefined): Forwarded {
  if (header === undefined) return FROM_NOBODY;
  return JSON.parse(Buffer.from(header, "base64url").toString()) as Forwarded;
}
