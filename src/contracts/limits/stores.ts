/** Requests to object stores, and how long a job waits for one. */

/** A store's connection that is silent for this long is closed, and the request is retried. */
export const STORE_SILENCE_MS = 15_000;
/**
 * A page of a store's listing. 1,000 keys of 1,024 bytes, each byte as `%XX` and with some 300 bytes of XML per key,
 * are 3.4 MB.
 */
export const STORE_PAGE_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Objects, arrays and members in a page of JSON. A page has 1,000 objects of two members each, or 100 each if a store
 * sends more than requested.
 */
export const STORE_PAGE_VALUES_MAX = 100_000;
/** The body of a store's error response. No store sends more than two kilobytes. */
export const STORE_ERROR_BYTES_MAX = 256 * 1024;
/** How long a job waits for a store since its last response: longer than a restart, or an outage of some minutes. */
export const STORE_PATIENCE_MS = 15 * 60_000;
/** The longest pause between two retries of a store. */
export const STORE_PAUSE_MAX_MS = 15_000;
/** Prefixes of a submission that are listed at the same time, if listing needs the network. */
export const PARALLEL_LISTINGS = 8;
