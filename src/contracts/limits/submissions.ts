/** What one submission may contain: its items, paths, patterns and names. */

/** Items of a submission that are stored in the database, as lines. More are in a file of the job. */
export const ITEMS_STORED_BYTES_MAX = 8 * 1024;

/** docs/contract/submitting.md#batch-size-limit: a batch's compact JSON array must be smaller than this many bytes. */
export const BATCH_BYTES_LIMIT = 262_144;
/** The lines of a batch with their white space, which does not count above. A running job holds some of them. */
export const BATCH_LINES_BYTES_MAX = 2 * 1024 * 1024;
/** docs/contract/submitting.md#submission-size: the body of a submission must be smaller than this many bytes. */
export const SUBMISSION_BYTES_LIMIT = 10_485_760;
/**
 * A submission without its items: `config` and lists of paths, with space for their escapes. A longer one would be
 * refused anyway.
 */
export const SUBMISSION_HEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Keys of a submission's object: far more than the legal ones, and few enough to report each wrong one. */
export const SUBMISSION_KEYS_MAX = 100;
/** A body that is nested deeper is not parsed: every legal body is far flatter, and V8 needs 200 bytes per level. */
export const BODY_DEPTH_MAX = 10_000;
/**
 * Nested arrays and objects of an item. Python's parser fails at its recursion limit of 1,000, minus the frames that
 * call it and the batch's own array: at about 985. assembly/json-lines.ts has the same number.
 */
export const ITEM_DEPTH_MAX = 900;
/**
 * Characters of a JSON number in an item: the most digits of an integer that Python reads
 * (`sys.get_int_max_str_digits()`).
 */
export const NUMBER_CHARACTERS_MAX = 4_300;
/**
 * Entries of `store_paths`. Each one is listed by a separate request, 8 at a time. A prefix can stand for any number of
 * files.
 */
export const STORE_PATHS_MAX = 100_000;
/**
 * Total characters of a submission's `store_paths`: 30,000 usual paths. They are sorted in one step, and stored with
 * the job.
 */
export const STORE_PATHS_CHARACTERS_MAX = 2 * 1024 * 1024;
/** UTF-8 bytes of one path: Linux allows 4,096 for a file, and stores allow 1,024 for a key. */
const FILE_BYTES_MAX = 4_096;
export const PATH_BYTES_MAX = FILE_BYTES_MAX + "file://".length;
/**
 * What an output adds to its `store_path`: slashes, the job's id of 26 characters, and a name such as
 * `part-1-1.1.jsonl.zst`, whose three numbers have 26 digits at most.
 */
const OUTPUT_NAMES_BYTES = 80;
export const OUTPUT_FILE_BYTES_MAX = FILE_BYTES_MAX - OUTPUT_NAMES_BYTES;
export const OUTPUT_KEY_BYTES_MAX = 1_024 - OUTPUT_NAMES_BYTES;
/** A longer glob pattern is refused, because matching takes pattern × path steps. */
export const GLOB_LENGTH_MAX = 1024;
/**
 * Patterns of one list, and their total characters. A path is matched against each pattern, in as many steps per
 * character as the pattern is long at worst. This limits the cost of one path to 65,536 × 1,024 characters at 6 ns:
 * half a second, cut into slices.
 */
export const GLOBS_MAX = 1000;
export const GLOB_CHARACTERS_MAX = 65_536;
/** Characters of the name or ARN of a dead letter queue. */
export const QUEUE_NAME_LENGTH_MAX = 256;
/** The region in an ARN of SQS. The longest region of Amazon's has 14 characters. */
export const SQS_REGION_LENGTH_MAX = 32;
/**
 * docs/contract/submitting.md#slow-listing: a submission is accepted if its listing finds no match within this time.
 */
export const FIRST_MATCH_MS = 10_000;
/**
 * Submissions and dry runs that look for their first file at once: in all, of one API, and of one key (or one address
 * without a key). Each has up to four pages of listings in memory, of some 2 MB.
 */
export const CHECKS_MAX = 16;
export const CHECKS_OF_AN_API_MAX = 8;
export const CHECKS_OF_A_SENDER_MAX = 4;
/** Those of one key that wait for a place, for at most FIRST_MATCH_MS. */
export const CHECKS_WAITING_OF_A_SENDER_MAX = 100;
/** Prefixes that such a check lists at the same time: the next one, while it looks through the first. */
export const CHECK_PARALLEL_LISTINGS = 2;
/** docs/contract/submitting.md#idempotency-key: how long an `Idempotency-Key` is remembered, and how long it may be. */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000;
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;
/** Expired keys that a submission with a key deletes, in its own commit: more than it adds, in under a millisecond. */
export const EXPIRED_KEYS_AT_ONCE = 100;
/** The body of a redrive must be smaller than this many bytes. */
export const REDRIVE_BYTES_LIMIT = 64 * 1024;
