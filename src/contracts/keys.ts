/** Keys and their permissions (docs/contract/access.md#scopes). */
import * as z from "zod";
import { KEY_NAME_LENGTH_MAX } from "./limits/authorization.ts";

export const KEY_SCOPES = ["predict", "submit", "view", "admin"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** The scopes that are for the whole server, never for one API. */
const SERVER_SCOPES: readonly KeyScope[] = ["view", "admin"];

/** What one key, or one claim of a token, permits. */
export interface Permission {
  scope: KeyScope;
  /** The only API; null for all APIs. */
  api: string | null;
}

/** The id of the data directory's admin token, which is listed among the keys. */
export const ADMIN_KEY_ID = "admin-token";
/** The id of the admin token before, as long as it is valid. */
export const FORMER_ADMIN_KEY_ID = "admin-token-former";
/** What `POST /-/keys/{id}/rotate` calls the admin token. */
export const ADMIN_TOKEN_NAMES: readonly string[] = ["admin", ADMIN_KEY_ID];

/** Who made a change: a key, or the subject of a token; null if none was needed. The name is that of the time. */
export interface DoneBy {
  id: string | null;
  name: string | null;
}
export const NOBODY: DoneBy = { id: null, name: null };

/** The number of requests allowed per number of seconds. */
export interface KeyRate {
  requests: number;
  seconds: number;
}

/** The stored part of a key, which never includes the key itself. */
export interface StoredKey extends Permission {
  id: string;
  /** Who or what has the key, in the words of whoever created it; null without one. */
  name: string | null;
  /** SHA-256 of the key, hexadecimal. It needs no salt, because a key has 192 random bits. */
  sha256: string;
  created_time: string;
  /** Null for no limit. */
  rate: KeyRate | null;
  /** When the key expires; null for never. */
  expires_time: string | null;
  revoked_time: string | null;
  /** For a session of a browser: the id of its key. */
  session_of?: string | undefined;
}

/** A key as lists show it. */
export type KeyView = Omit<StoredKey, "sha256" | "session_of"> & {
  /** Exact to a minute; null if it was never used. */
  last_used_time: string | null;
};

/** A new key, which is shown once and not kept. */
export type CreatedKey = KeyView & { key: string };

const RATE_UNITS_S: Record<string, number> = { s: 1, m: 60, h: 3600 };

/** Parses `100/s`, `5000/m` or `20000/h`; undefined if the text is no rate. */
export function parseRate(text: string): KeyRate | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? [];
  return requests === undefined ? undefined : { requests: Number(requests), seconds: RATE_UNITS_S[unit!]! };
}

export function rateText({ requests, seconds }: KeyRate): string {
  const unit = Object.entries(RATE_UNITS_S).find(([, length]) => length === seconds)![0];
  return `${requests}/${unit}`;
}

const VISIBLE = "[^\\x00-\\x20\\x7f]";
/** Regular expressions, so that the API's description has them too. */
const rate = z.string().regex(/^[1-9]\d{0,8}\/[smh]$/, "must be a rate such as 100/s, 5000/m or 20000/h");
export const DURATION_PATTERN = /^\d{1,6}(ms|s|m|h)$/;
const duration = z.string().regex(DURATION_PATTERN, "must be a duration such as 24h, 30m or 500ms");

/** At most KEY_NAME_LENGTH_MAX characters, no control characters, no spaces around. */
const name = z
  .string()
  .regex(
    new RegExp(`^${VISIBLE}(?:[^\\x00-\\x1f\\x7f]{0,${KEY_NAME_LENGTH_MAX - 2}}${VISIBLE})?$`, "u"),
    `must be 1 to ${KEY_NAME_LENGTH_MAX} characters, without control characters and without spaces around`,
  );

const newDuration = duration.regex(/[1-9]/, "must be longer than 0");

/** The body of `POST /-/keys`. */
export const newKeySchema = z
  .strictObject({
    scope: z.enum(KEY_SCOPES, `must be one of ${KEY_SCOPES.join(", ")}`),
    api: z.string().min(1, "must not be empty").nullish(),
    name: name.nullish(),
    rate: rate.nullish(),
    expires_in: newDuration.nullish(),
  })
  .refine(({ scope, api }) => !SERVER_SCOPES.includes(scope) || api == null, {
    path: ["api"],
    message: `must be left out: a key of scope ${SERVER_SCOPES.join(" or ")} is for the whole server`,
  })
  // The same rule for the API's description, which cannot express a refinement.
  .meta({
    not: {
      properties: { scope: { enum: SERVER_SCOPES }, api: { type: "string" } },
      required: ["scope", "api"],
    },
  });

/** A key that is asked for. */
export interface NewKey extends Permission {
  name: string | null;
  rate: KeyRate | null;
  /** A duration from now; null for never. */
  expires_in: string | null;
}

/** A key as a body of `POST /-/keys` asks for it. */
export function askedKey({ scope, api, name, rate, expires_in }: z.infer<typeof newKeySchema>): NewKey {
  return {
    ...{ scope, api: api ?? null, name: name ?? null },
    rate: rate == null ? null : parseRate(rate)!,
    expires_in: expires_in ?? null,
  };
}

/** The body of `POST /-/keys/{id}/rotate`. */
export const rotateKeySchema = z.strictObject({
  /** How long the former key still works. Without it, a key works for one more day, and the admin token ends at once. */
  grace: duration.optional(),
  /** How long the new key is valid, or `never`. Required if the former key has an expiry time. */
  expires_in: z.union([z.literal("never"), newDuration]).optional(),
});
