/** Keys and what they open (decisions, section 8). */
import { z } from "zod";

export const KEY_SCOPES = ["predict", "submit", "admin"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** What is kept of a key: never the key itself. */
export interface StoredKey {
  id: string;
  /** SHA-256 of the key, hexadecimal. A key has 192 random bits, so that no salt is needed. */
  sha256: string;
  scope: KeyScope;
  /** The one API that it opens; null for all. */
  api: string | null;
  created_time: string;
}

export type KeyView = Omit<StoredKey, "sha256">;

/** A key as it is shown once; it is not kept. */
export type CreatedKey = KeyView & { key: string };

/** The body of `POST /-/keys`. */
export const newKeySchema = z.strictObject({
  scope: z.enum(KEY_SCOPES, `must be one of ${KEY_SCOPES.join(", ")}`),
  api: z.string().min(1, "must not be empty").nullish(),
});
