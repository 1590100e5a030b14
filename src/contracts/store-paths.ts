/**
 * The form of an address of objects: `<scheme>://<bucket>/<key>`, or `file:///path` (docs/contract/submitting.md#schemes).
 */

/** Schemes of stores with buckets or containers. */
export const BUCKET_SCHEMES = ["s3", "gs", "az"] as const;
export const STORE_SCHEMES = [...BUCKET_SCHEMES, "file"] as const;
export type StoreScheme = (typeof STORE_SCHEMES)[number];

/** The characters that any of the stores allows in names of buckets and containers. */
const BUCKET = "\\$?[a-zA-Z0-9][a-zA-Z0-9._-]{1,221}";
export const BUCKET_NAME = new RegExp(`^${BUCKET}$`);

/** The same rule for the API's description. A file's path is absolute and has no null byte. */
export const STORE_PATH_PATTERN = `^(?:(?:${BUCKET_SCHEMES.join("|")})://${BUCKET}(?:/|$)|file:///[^\\u0000]*$)`;
