/** Every limit of the product, with its unit. A limit that the contract does not set has its calculation too. */

/** docs/contract/submitting.md#batch-size-limit: a batch's compact JSON array must be smaller than this many bytes. */
export const BATCH_BYTES_LIMIT = 262_144;
/** docs/contract/submitting.md#submission-size: the body of a submission must be smaller than this many bytes. */
export const SUBMISSION_BYTES_LIMIT = 10_485_760;
/** The largest body of a real-time prediction, in bytes, unless `--max-body` says otherwise. */
export const PREDICTION_BYTES_LIMIT_DEFAULT = 100 * 1024 * 1024;
/** The largest project, in bytes. */
export const PROJECT_BYTES_LIMIT = 512 * 1024 * 1024;
/** A project's files and directories. Each takes an inode and a sync, so that 100,000 take a minute on a usual disk. */
export const PROJECT_ENTRIES_MAX = 100_000;
/**
 * Bytes of a path in a project, and nested directories. Linux allows 4,096 bytes for a path, which include the data
 * directory's.
 */
export const PROJECT_PATH_BYTES_MAX = 1024;
export const PROJECT_DEPTH_MAX = 64;
/** Bytes of a project's archive besides its files: headers and padding, at most 2.5 KiB per entry. */
export const PROJECT_HEADERS_BYTES_MAX = 256 * 1024 * 1024;
/** A line of input may have white space that does not count. Past this many raw bytes it is refused. */
export const LINE_BYTES_LIMIT = 8 * 1024 * 1024;

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
 * Compact JSON of a submission's `config` and of an API's `predictor.config`. Each worker and each status carries it. A
 * controller holds it for every running job: 1,000 jobs are 256 MiB. Larger values belong in a file that `config`
 * names.
 */
export const CONFIG_BYTES_MAX = 262_144;
/** ... and its depth: a worker merges the two configurations recursively, and nobody reads a hundred levels. */
export const CONFIG_DEPTH_MAX = 100;
/** `predictor.env`: Linux allows a process 2 MiB for its arguments and variables, and 128 KiB for one variable. */
export const ENV_VARIABLES_MAX = 1_000;
export const ENV_BYTES_MAX = 128 * 1024;
/**
 * Paths, addresses and keys in a configuration. Linux allows 4,096 bytes for a path, and an address must fit into the
 * head of a request.
 */
export const CONFIG_TEXT_LENGTH_MAX = 1_024;
/** Allowed origins of one API: each request is compared with each of them. */
export const ORIGINS_MAX = 100;
export const SPLIT_APIS_MAX = 100;
/** Names of an application's resources. They are part of file names, for which Linux allows 255 bytes. */
export const RESOURCE_NAME_LENGTH_MAX = 128;
/** More than any machine has, and small enough that sums stay exact. */
export const CPU_MILLIS_MAX = 100_000_000;
export const MEMORY_BYTES_MAX = 2 ** 50;
/** A body that is nested deeper is not parsed: every legal body is far flatter, and V8 needs 200 bytes per level. */
export const BODY_DEPTH_MAX = 10_000;
/**
 * Entries of `store_paths`. Each one is listed by a separate request, 8 at a time. A prefix can stand for any number of
 * files.
 */
export const STORE_PATHS_MAX = 100_000;
/** UTF-8 bytes of one path: Linux allows 4,096 for a file, and stores allow 1,024 for a key. */
export const PATH_BYTES_MAX = 4_096 + "file://".length;
/** Characters of the name or ARN of a dead letter queue. */
export const QUEUE_NAME_LENGTH_MAX = 256;
/** A caller's text is quoted to this many characters in messages, so that a response is not larger than its request. */
export const QUOTED_LENGTH_MAX = 120;
/** Aliases in one YAML text. The parser searches all anchors for each alias, so that 1,000 take 60 ms. */
export const YAML_ALIASES_MAX = 1_000;
/** Values that aliases may add to one YAML text, including those of nested aliases: 100,000 are checked in 0.2 s. */
export const YAML_COPIES_MAX = 100_000;
/**
 * Characters of all embeds of one application together, with their args filled in. A template of 1 MB is acceptable,
 * but a thousand embeds of it are not.
 */
export const EMBEDDED_TEXT_MAX = 4 * 1024 * 1024;

/** Errors shown in one response (docs/contract/errors.md#errors-shown). */
export const ERRORS_SHOWN_MAX = 20;
/**
 * Characters of an error's text, and of the text about one field. They quote what was given, which may be megabytes.
 */
export const ERROR_TEXT_MAX = 8 * 1024;
export const FIELD_TEXT_MAX = 1024;

/** Long work yields the event loop after this time: a tenth of what a request may wait. */
export const SLICE_MS = 10;
/**
 * A longer submission is parsed in a thread beside the event loop. 64 KiB take up to 5 ms, and starting a thread takes
 * 100 ms. Nearly all submissions that name files are shorter.
 */
export const READ_HERE_BYTES_MAX = 64 * 1024;
/** ... within this time: 10 MiB of the smallest items take 2 s ... */
export const READ_ASIDE_LIMIT_MS = 60_000;
/** ... and this much memory of the thread: 10 MiB are 3.5 million empty objects at 56 bytes. */
export const READ_ASIDE_HEAP_MIB = 384;
/**
 * Bytes that wait for the thread: as many as all bodies that may be held (CONTROL_BODIES_BYTES_MAX). They are counted
 * separately, because a body whose connection has ended is no longer held but may still wait.
 */
export const ASIDE_WAITING_BYTES_MAX = 128 * 1024 * 1024;
/**
 * A submission without its items: `config` and lists of paths, with space for their escapes. A longer one would be
 * refused anyway.
 */
export const SUBMISSION_HEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Keys of a submission's object: far more than the legal ones, and few enough to report each wrong one. */
export const SUBMISSION_KEYS_MAX = 100;
/** A longer configuration is refused. It would be ten thousand times as long as usual. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** A longer file of requirements is refused: a thousand packages with ten hashes each. */
export const REQUIREMENTS_BYTES_MAX = 1024 * 1024;
/** APIs of one file. Each is compared with all others, and recording them is one step of a few milliseconds. */
export const APIS_MAX = 500;
/** A configuration of more bytes is parsed in the thread: the parser reads 2 MB a second, and reads twice. */
export const CONFIG_READ_HERE_BYTES_MAX = 8 * 1024;

/**
 * A frame's body, in bytes: large enough that the header costs nothing, small enough that other messages wait less than
 * 0.1 ms.
 */
export const FRAME_BODY_BYTES_MAX = 256 * 1024;
/** How much of one long body a sender may have in flight before the receiver grants more: four frames. */
export const STREAM_WINDOW_BYTES = 4 * FRAME_BODY_BYTES_MAX;
/**
 * What a piece of a stream uses of its window in addition to its bytes. Without it, half a million pieces of two bytes
 * would fit into a window, and each costs the gateway 10 us and 500 bytes. With it, four thousand fit.
 */
export const STREAM_PIECE_BYTES = 256;
/** Pieces of a stream that arrive in one turn of the event loop are written together, about this many bytes at once. */
export const STREAM_WRITE_BYTES = 64 * 1024;
/** After this many frames of one read, at 2 us each, other work runs: libuv reads up to 32 times, 40,000 frames each. */
export const FRAMES_A_TURN = 1024;
/** The largest body that is reassembled, in bytes. */
export const MESSAGE_BYTES_MAX = 512 * 1024 * 1024;
/**
 * An exception of user code: bytes of each field's JSON text as the worker sends it. python/quern_runtime/faults.py
 * cuts the fields and has the same numbers. Together they are 97 KiB: an exception always fits into a frame, and an ACK
 * has space for at least two. Nobody reads a message of 8 KiB to its end. A traceback of 24 KiB has some 150 calls. A
 * detail is a response to a client, such as a list of 500 invalid fields.
 */
export const FAULT_TYPE_BYTES_MAX = 256;
export const FAULT_MESSAGE_BYTES_MAX = 8 * 1024;
export const FAULT_TRACEBACK_BYTES_MAX = 24 * 1024;
export const FAULT_DETAIL_BYTES_MAX = 64 * 1024;

/**
 * A segment ends at the first of these limits. 1 MiB is read in less than a millisecond; 8,192 batches are a bitmap of
 * 1 KiB.
 */
export const SEGMENT_BYTES_TARGET = 1024 * 1024;
export const SEGMENT_BATCHES_MAX = 8192;
/** The longest interval between two group commits. */
export const COMMIT_INTERVAL_MS = 5;
export const ENQUEUE_COMMIT_BYTES = 4 * 1024 * 1024;

/** Work leased to one worker: about this much, so that no batch waits long for those before it. */
export const LEASED_WORK_US = 50_000;
/**
 * ... and at most this many batches: at 125,000 batches/s per worker, two commit intervals and a round trip hold 1,500.
 */
export const CREDIT_BATCHES_MAX = 2048;
/** ... and at most this many bytes. */
export const CREDIT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * docs/contract/failing-batches.md#interruptions: a batch that was interrupted this often runs alone. If it is
 * interrupted again, it is charged.
 */
export const INTERRUPTIONS_MAX = 3;
/**
 * docs/contract/jobs.md#ends-early: a job ends after this many deaths in a row with no batch in hand. It also ends
 * after this many batches in a row that were lost to deaths.
 */
export const IDLE_DEATHS_MAX = 3;
export const DEADLY_BATCHES_MAX = 10;
/**
 * A job ends after this many of its workers, in total, broke the protocol. Two may be caused by a predictor that writes
 * to files that are not its own; after a third it would never stop.
 */
export const BROKEN_WORKERS_MAX = 3;
/** docs/contract/jobs.md#stop-grace: SIGTERM, then SIGKILL after this grace. */
export const STOP_GRACE_MS = 10_000;

/** Requests waiting for a real-time API's replicas, per replica, unless `max_replica_concurrency` says otherwise. */
export const REPLICA_CONCURRENCY_DEFAULT = 1024;
/** Predictions in flight at one worker while each takes far less than a millisecond. */
export const PREDICTION_WINDOW_MAX = 128;
/** The default of `predictor.timeout` for a real-time API. */
export const PREDICTION_TIMEOUT_DEFAULT_MS = 60_000;

/**
 * A worker's log takes at most 32 MiB on disk. The worker itself rotates it at 8 MiB (`quern_runtime/log_file.py` has
 * the same number). With one older file, and a third one while it is copied, that is 24 MiB.
 */
export const LOG_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** The worker does not see what C code and child processes write. So the server rotates at this size ... */
export const RAW_LOG_BYTES_MAX = 10 * 1024 * 1024;
/** ... and from this size on keeps only LOG_FLOOD_KEPT_BYTES. A writer at 1 GB/s leaves no time to copy more. */
export const LOG_FLOOD_BYTES = 14 * 1024 * 1024;
export const LOG_FLOOD_KEPT_BYTES = 1024 * 1024;
/** How often a growing log is polled: a writer at 1 GB/s adds 8 MiB between two polls. */
export const LOG_POLL_MS = 8;
/** A longer line is cut when it is written or shown. */
export const LOG_LINE_BYTES_MAX = 64 * 1024;
/** Logs of ended workers that are kept for one API or one job. Older ones are removed. */
export const FORMER_LOGS_KEPT = 10;
/** Page sizes of lists (docs/contract/jobs.md#list-of-jobs). */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 500;
/** Rows of a list that are read and sent at once. A reason has up to 20 KiB. */
export const LIST_ROWS_AT_ONCE = 50;
/** A longer glob pattern is refused, because matching takes pattern × path steps. */
export const GLOB_LENGTH_MAX = 1024;
/**
 * Patterns of one list, and their total characters. A path is matched against each pattern, in as many steps per
 * character as the pattern is long at worst. This limits the cost of one path to 65,536 × 1,024 characters at 6 ns:
 * half a second, cut into slices.
 */
export const GLOBS_MAX = 1000;
export const GLOB_CHARACTERS_MAX = 65_536;
/** States of automata that one selection keeps, about a kilobyte each. */
export const GLOB_STATES_KEPT = 2000;
/**
 * Total characters of a submission's `store_paths`: 30,000 usual paths. They are sorted in one step, and stored with
 * the job.
 */
export const STORE_PATHS_CHARACTERS_MAX = 2 * 1024 * 1024;
/**
 * A compressed file may unpack to this many times its size (deflate reaches at most 1,032; JSON lines rarely 50) ...
 */
export const COMPRESSION_RATIO_MAX = 1100;
/** ... and is checked once it has produced this many bytes. */
export const COMPRESSION_FREE_BYTES = 64 * 1024 * 1024;
/**
 * Zstandard: how far back a file may refer. All of this window is held in memory. `zstd --long` needs 128 MiB. Every
 * level without `--ultra` needs at most 8 MiB, which any decompressor should support (RFC 8878). At most two larger
 * windows are held at once: 256 MiB.
 */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;
export const ZSTD_COMMON_WINDOW_BYTES = 8 * 1024 * 1024;
export const LARGE_WINDOWS_MAX = 2;
/**
 * docs/contract/submitting.md#slow-listing: a submission is accepted if its listing finds no match within this time.
 */
export const FIRST_MATCH_MS = 10_000;
/** docs/contract/submitting.md#idempotency-key: how long an `Idempotency-Key` is remembered, and how long it may be. */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000;
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;
/**
 * Events of a job: how often its state is polled, and the longest interval between two events while it runs
 * (docs/contract/jobs.md#job-events).
 */
export const EVENT_POLL_MS = 200;
export const EVENT_EVERY_MS = 1000;
/** docs/contract/failing-batches.md#stalled: a worker that waits for compute for longer than this is stalled. */
export const STALLED_AFTER_MS = 600_000;
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
/** The body of a response of SQS: some hundred bytes for each of ten messages. */
export const SQS_ANSWER_BYTES_MAX = 256 * 1024;
/** How long a job waits for a store since its last response: longer than a restart, or an outage of some minutes. */
export const STORE_PATIENCE_MS = 15 * 60_000;
/** The longest pause between two retries of a store. */
export const STORE_PAUSE_MAX_MS = 15_000;
/** Prefixes of a submission that are listed at the same time, if listing needs the network. */
export const PARALLEL_LISTINGS = 8;
/** SQS: messages in one SendMessageBatch, and the total bytes of bodies and attributes that every queue accepts. */
export const LETTERS_A_REQUEST = 10;
export const LETTER_BYTES_MAX = 262_144;
/** How often old jobs are removed, and how many at once. Each statement deletes rows for a few milliseconds. */
export const PRUNE_EVERY_MS = 3_600_000;
export const PRUNED_JOBS_AT_ONCE = 100;
export const PRUNED_ROWS_AT_ONCE = 1000;
/** The body of a redrive must be smaller than this many bytes. */
export const REDRIVE_BYTES_LIMIT = 64 * 1024;
/** A stream that is silent this long gets a comment or an empty line, before a proxy closes it (60 s is common). */
export const STREAM_HEARTBEAT_MS = 15_000;
/** An async call or a generator that was cancelled has this long to end before its worker is replaced. */
export const CANCEL_GRACE_MS = 2_000;
/**
 * Bodies of requests that a gateway holds at once, in bytes, including announced ones. It is more if --max-body is
 * more.
 */
export const HELD_BODIES_BYTES_MAX = 512 * 1024 * 1024;
/**
 * A body of more than SMALL_BODY_BYTES must not stall: in each period, this share of its reserved bytes must arrive. At
 * this pace it would take ten minutes, twice as long as a request may.
 */
export const BODY_PACE_MS = 15_000;
export const BODY_PACE_SHARE = 1 / 40;
/**
 * The part of HELD_BODIES_BYTES_MAX that is kept for small bodies: 1,000 of them, even while large announced bodies
 * arrive slowly or not at all.
 */
export const HELD_SMALL_BODIES_BYTES = 64 * 1024 * 1024;
export const SMALL_BODY_BYTES = 64 * 1024;
/** Bodies of submissions that a controller holds at once: twelve of the largest, beside 128 small ones. */
export const CONTROL_BODIES_BYTES_MAX = 128 * 1024 * 1024;
export const CONTROL_SMALL_BODIES_BYTES = 8 * 1024 * 1024;
/**
 * Pipelined requests of one connection. Node takes 1,500 of them at once, which delayed all other requests by seconds.
 * Load generators pipeline up to twenty, clients none.
 */
export const REQUESTS_OF_A_CONNECTION_MAX = 20;
/** TLS handshakes in progress on one listener of a gateway: 60 KB each, and five seconds of work for a core. */
export const HANDSHAKES_MAX = 1_000;
/**
 * How many requests for names that a gateway does not know are forwarded to the controller at once, for callers without
 * a key. Each takes 1.2 ms in both processes.
 */
export const STRANGERS_ASKED_FOR_MAX = 8;
/**
 * Requests that a gateway has with the controller at once. The controller takes up to 7 ms for one, and keeps everybody
 * else waiting meanwhile. A request counts until it is answered, for at most a second: a body may come slowly.
 */
export const FORWARDED_AT_ONCE_MAX = 32;
export const FORWARDED_HOLD_MS = 1_000;
/** Requests of one key, or of one address without a key, that wait for their turn at the controller. */
export const FORWARDED_WAITING_OF_A_SENDER_MAX = 500;
/**
 * Streams that one key may have open: events of jobs, and logs that are followed. Each polls the database or the disk
 * five times a second, for 0.1 ms. A hundred take a twentieth of a core; all that may be open take a quarter.
 */
export const STREAMS_OF_A_KEY_MAX = 100;
export const STREAMS_MAX = 500;
/**
 * Lists of failures that one key reads at once. Each holds up to 2 MiB of errors (20 of 97 KiB) and 3 MiB of a segment
 * until its client reads on. All that may be open hold 200 MiB.
 */
export const LISTS_OF_A_KEY_MAX = 10;
export const LISTS_MAX = 40;
/** How often the key of an open stream is checked: a revocation must end the stream within 2 s. */
export const STREAM_POLL_MS = 500;
/**
 * After a failure, a gateway waits this long before it fetches an issuer's keys again, and twice as long after each
 * further failure. So each gateway asks an issuer that is down twice a minute, however many tokens arrive. After an
 * issuer's restart its tokens work again within two seconds.
 */
export const JWKS_COOLDOWN_FIRST_MS = 1_000;
export const JWKS_COOLDOWN_MAX_MS = 30_000;
/** The response with an issuer's keys: some 500 keys. Issuers have two or three. */
export const JWKS_BYTES_MAX = 1024 * 1024;
/**
 * Signatures that a gateway remembers, some 100 bytes each: 40 MB. One access key can sign 440 requests a second before
 * its window becomes shorter than 15 minutes. At 10,000 a second the window is 40 s.
 */
export const SIGNATURES_MAX = 400_000;
/**
 * A signature's time has a resolution of seconds. A request that was signed twice in one second arrives twice within
 * this time, even over a slow network.
 */
export const REPEATED_SIGNATURE_MS = 5_000;
/**
 * Log lines of one kind (5xx responses of one code, refused changes) in one window. Further ones are only counted. That
 * is two lines a second, some 300 bytes each.
 */
export const FLOOD_LINES_MAX = 20;
export const FLOOD_WINDOW_MS = 10_000;
/** Kinds that are counted separately: at most 2,000 lines in a window. All further kinds share one count. */
export const FLOOD_KINDS_MAX = 100;
/** Anyone may send a path, of up to 16 KiB. The first characters show what was meant. */
export const LOGGED_PATH_LENGTH_MAX = 256;
/**
 * The audit of changes. A line has 200 to 800 bytes, so that five files of 8 MiB have 50,000 to 200,000 changes.
 * Refused requests have separate files, so that callers without a key cannot push out the changes of those with one. 8
 * MiB are an hour of the worst flood.
 */
export const AUDIT_FILE_BYTES_MAX = 8 * 1024 * 1024;
export const AUDIT_FILES_MAX = 5;
export const AUDIT_REFUSED_FILE_BYTES_MAX = 4 * 1024 * 1024;
export const AUDIT_REFUSED_FILES_MAX = 2;
/** How often the audit is polled for clients that follow it. */
export const AUDIT_POLL_MS = 500;
/**
 * docs/contract/configuration.md#scaled-to-zero: how long a request waits for the first replica of an API that was
 * scaled to zero.
 */
export const WAKE_UP_MS = 300_000;
/** The longest duration in a configuration: a day less than Node's longest timer (2^31 ms, 24.8 days). */
export const DURATION_MS_MAX = 23 * 86_400_000;
/** Replicas of one API: a third of the processes that Linux allows by default. */
export const REPLICAS_MAX = 10_000;
/** `threads_per_process`: each thread needs a stack, and Linux allows a process about 32,000. */
export const THREADS_MAX = 10_000;
/** The default of `max_replicas`. */
export const MAX_REPLICAS_DEFAULT = 100;
/**
 * Classes that a gateway counts separately for one API: 100 rows an hour, 100 labels. All others count as `(others)`.
 */
export const CLASSES_COUNTED_MAX = 100;
/**
 * A class with more characters counts as `(others)`. Longer ones are texts, and a hundred of them make each report
 * long.
 */
export const CLASS_LENGTH_MAX = 128;
/** The numbers of `quern get` cover two weeks, as Cortex's did. */
export const METRICS_KEPT_MS = 14 * 86_400_000;
export const METRICS_PRUNE_EVERY_MS = 3_600_000;
/**
 * How often the parent checks that its children respond: five times before it replaces one, at 50 microseconds each.
 */
export const HEARTBEAT_MS = 2_000;
/**
 * A gateway or controller that is silent for longer is replaced. A synchronous step of Quern may take one second.
 * Longer work is cut into pieces or runs in a thread, as the check of the database does. So only a stopped process or
 * an endless loop reaches this limit, even on a machine that is ten times as slow.
 */
export const CHILD_SILENT_MAX_MS = 10_000;
/** ... while it starts: migrations, and the recovery of a large log, are single steps of SQLite. */
export const CHILD_START_SILENT_MAX_MS = 120_000;
/** A child that ends is restarted: at once, then with growing pauses up to this. */
export const CHILD_RESTART_FIRST_MS = 20;
export const CHILD_RESTART_MAX_MS = 10_000;
/**
 * Pauses before a database that another process has locked is tried again. They grow, and one try takes microseconds.
 */
export const LOCK_RETRY_FIRST_MS = 2;
export const LOCK_RETRY_MAX_MS = 100;
/** A lock that is held longer is logged: a backup, or a shell that was left open. */
export const LOCK_TOLD_MS = 2_000;
/** A larger database is checked during the start and not before it: a cold disk reads 100 MB a second. */
export const QUICK_CHECK_WAIT_BYTES = 1024 ** 3;
/**
 * Added to the `oom_score_adj` of each worker. The kernel then counts a worker as if it used half of the machine's
 * memory more. The server's own processes use far less than half.
 */
export const WORKER_OOM_SCORE = 500;
/**
 * How often the runtime directory is checked: less than the 5 s that a request waits for a controller that does not
 * listen.
 */
export const RUNTIME_POLL_MS = 2_000;

/** OpenID Connect Core, section 2: the longest subject, in characters. */
export const TOKEN_SUBJECT_CHARACTERS_MAX = 255;
/**
 * The head of a request at the controller, in bytes. Gateways accept 16 KiB (Node's own limit) and add the permissions
 * of a token. A claim of 12 KiB becomes up to 40 KiB.
 */
export const CONTROLLER_HEAD_BYTES_MAX = 128 * 1024;
