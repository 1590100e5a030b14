/** Requests to object stores, and how long a job waits for one. */
import { PATH_BYTES_MAX } from "./submissions.ts";

/** A store's connection that is silent for this long is closed, and the request is retried. */
export const STORE_SILENCE_MS = 15_000;
/**
 * A page of a store's listing. 1,000 keys of 1,024 bytes, each byte as `%XX` and with some 300 bytes of XML per key,
 * are 3.4 MB.
 */
export const STORE_PAGE_BYTES_MAX = 16 * 1024 * 1024;
/**
 * The same of JSON, which is parsed in one step. 1,000 keys of 1,024 bytes, each byte as `\u003d` and with 100 bytes of
 * JSON per key, are 6.2 MB.
 */
export const STORE_JSON_PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Pages of more bytes are large: no store sends them for keys of usual length. */
export const STORE_SMALL_PAGE_BYTES = 2 * 1024 * 1024;
/** Large pages of one store that are read at once: 50 MB each while they are parsed. */
export const STORE_LARGE_PAGES_MAX = 2;
/** Entries of a page, and the characters of their keys. Azure sends up to 5,000, of up to 1,024 characters. */
export const STORE_PAGE_ENTRIES_MAX = 5_000;
export const STORE_PAGE_KEYS_CHARACTERS_MAX = STORE_PAGE_ENTRIES_MAX * 1_024;
/**
 * A key as it is written in XML. A byte takes up to eight characters: `%41` with a reference in place of `%`, which is
 * `&#x25;41`.
 */
export const STORE_KEY_WRITTEN_MAX = 8 * PATH_BYTES_MAX;
/** The token of the next page: those of stores have up to some kilobytes, because a key of 1,024 bytes is in them. */
export const STORE_TOKEN_CHARACTERS_MAX = 16 * 1024;
/**
 * Objects, arrays and members in a page of JSON. A page has 1,000 objects of two members each, or 100 each if a store
 * sends more than requested.
 */
export const STORE_PAGE_VALUES_MAX = 100_000;
/** The body of a store's error response. No store sends more than two kilobytes. */
export const STORE_ERROR_BYTES_MAX = 256 * 1024;
/** A longer one is not parsed: 256 KiB of elements took 160 ms, and nested ones failed with a RangeError. */
export const STORE_ERROR_PARSED_BYTES_MAX = 16 * 1024;
/** How long a job waits for a store since its last response: longer than a restart, or an outage of some minutes. */
export const STORE_PATIENCE_MS = 15 * 60_000;
/** The longest pause between two retries of a store. */
export const STORE_PAUSE_MAX_MS = 15_000;
/**
 * A large object is sent in pieces of this size. S3 wants at least 5 MiB, Google a multiple of 256 KiB. A piece that is
 * lost is sent again alone.
 */
export const STORE_PIECE_BYTES = 8 * 1024 * 1024;
/** Pieces of a file: they are not sent anywhere, so small ones do. */
export const FILE_PIECE_BYTES = 1024 * 1024;
/** S3's limit. An object has at most 78 GiB. */
export const STORE_PIECES_MAX = 10_000;
/** An object that is written whole, such as a list of 100,000 files with their checksums. It is in memory once. */
export const STORE_PUT_BYTES_MAX = 16 * 1024 * 1024;
/**
 * A response is ended if so many of its pieces in a row have fewer bytes together: each piece costs 1 to 2 us. So is a
 * request that gets more interim responses (1xx).
 */
export const RESPONSE_PIECES_COUNTED = 1_000;
export const RESPONSE_PIECES_BYTES_MIN = 32_000;
export const RESPONSE_INTERIM_MAX = 100;
/**
 * Requests that send bytes may take STORE_SILENCE_MS, and the time that the bytes need on a connection of 1 Mbit/s: 79 s
 * for a piece.
 */
export const STORE_SLOWEST_BYTES_PER_S = 128 * 1024;
/** How long a store may take to put the pieces of an object together: Amazon takes seconds for thousands. */
export const STORE_COMPLETE_MS = 60_000;
/** Buckets of which this process remembers that they honour conditions. A forgotten one is tried again. */
export const STORE_PROBES_KEPT = 1000;
/** Directories that are checked at once before jobs write there. Each takes one of the four threads for files. */
export const DIRECTORY_CHECKS_MAX = 2;
/** How long a caller waits for such a check: the server of a network directory may never respond. */
export const DIRECTORY_CHECK_MS = 20_000;
/**
 * How long the end of a job waits until parts and uploads that its manifest does not name are removed. A store removes
 * an object in 20 ms, and 16 at once: some 20,000.
 */
export const STORE_LEFTOVERS_MS = 30_000;
/** Removed at the same time. */
export const STORE_REMOVALS_AT_ONCE = 16;
/** Pages of 50 unfinished uploads that are read at once. Each killed process leaves a few. */
export const STORE_UPLOAD_PAGES_MAX = 200;
/** Prefixes of a submission that are listed at the same time, if listing needs the network. */
export const PARALLEL_LISTINGS = 8;
/** How long a request waits for the state of the server (`--state`), as for its database. */
export const STATE_REQUEST_PATIENCE_MS = 10_000;
/** A piece of an object that is read from beginning to end. */
export const STORE_READ_BYTES = 1024 * 1024;
/** How often a server reads whether another one has taken its state: one request each time. */
export const STATE_WATCH_MS = 30_000;
/** The object that says whose state it is: 300 bytes. */
export const STATE_OWNER_BYTES_MAX = 4_096;
