/** What an address of objects looks like: `<scheme>://<bucket>/<key>` (docs/contract/submitting.md#schemes). */

export const STORE_SCHEMES: readonly string[] = ["s3", "gs", "az", "file"];

/** The letters that names of buckets and containers have in any of the stores. */
const BUCKET = "\\$?[a-zA-Z0-9][a-zA-Z0-9._-]{1,221}";
export const BUCKET_NAME = new RegExp(`^${BUCKET}$`);

/** The same for the API's description; a file's path is absolute, and has no zero byte. */
export const STORE_PATH_PATTERN = `^(?:(?:s3|gs|az)://${BUCKET}(?:/|$)|file:///[^\\u0000]*$)`;
