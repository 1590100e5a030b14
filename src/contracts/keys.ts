/** Keys and what they open (decisions, section 8). */
import { z } from "zod";
import { parseDurationMs } from "./apis.ts";

export const KEY_SCOPES = ["predict", "submit", "admin"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** What a key, or one claim of a token, opens. */
export interface Grant {
  scope: KeyScope;
  /** The one API; null for all. */
  api: string | null;
}

/** So many requests in so many seconds. */
export interface KeyRate {
  requests: number;
  seconds: number;
}

/** What is kept of a key: never the key itself. */
export interface StoredKey extends Grant {
  id: string;
  /** SHA-256 of the key, hexadecimal. A key has 192 random bits, so that no salt is needed. */
  sha256: string;
  created_time: string;
  /** Null for no limit. */
  rate: KeyRate | null;
  /** From then on it opens nothing; null for never. */
  expires_time: string | null;
  revoked_time: string | null;
}

export type KeyView = Omit<StoredKey, "sha256">;

/** A key as it is shown once; it is not kept. */
export type CreatedKey = KeyView & { key: string };

const RATE_UNITS_S: Record<string, number> = { s: 1, m: 60, h: 3600 };

/** `100/s`, `5000/m`, `20000/h`; undefined where it is none of these. */
export function parseRate(text: string): KeyRate | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? [];
  return requests === undefined ? undefined : { requests: Number(requests), seconds: RATE_UNITS_S[unit!]! };
}

export function rateText({ requests, seconds }: KeyRate): string {
  const unit = Object.entries(RATE_UNITS_S).find(([, length]) => length === seconds)![0];
  return `${requests}/${unit}`;
}

const RATE_RULE = "must be a rate such as 100/s, 5000/m or 20000/h";
const DURATION_RULE = "must be a duration such as 24h or 30m";
const duration = z.string(DURATION_RULE).refine((text) => parseDurationMs(text) !== undefined, DURATION_RULE);

/** The body of `POST /-/keys`. */
export const newKeySchema = z.strictObject({
  scope: z.enum(KEY_SCOPES, `must be one of ${KEY_SCOPES.join(", ")}`),
  api: z.string().min(1, "must not be empty").nullish(),
  rate: z
    .string(RATE_RULE)
    .refine((text) => parseRate(text) !== undefined, RATE_RULE)
    .nullish(),
  expires_in: duration.nullish(),
});

/** The body of `POST /-/keys/{id}/rotate`. */
export const rotateKeySchema = z.strictObject({
  /** How long the former key goes on opening what it did; a day, where it is left out. */
  grace: duration.default("24h"),
});
