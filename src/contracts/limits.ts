/** Every bound of the product, with its unit and, where it is not the contract's, the sum behind it. */

/** docs/contract/submitting.md#batch-size-limit: a batch's compact JSON array must be smaller than this many bytes. */
export const BATCH_BYTES_LIMIT = 262_144;
/** docs/contract/submitting.md#submission-size: the body of a submission must be smaller than this many bytes. */
export const SUBMISSION_BYTES_LIMIT = 10_485_760;
/** The largest body of a real-time prediction, in bytes, unless `--max-body` says otherwise. */
export const PREDICTION_BYTES_LIMIT_DEFAULT = 100 * 1024 * 1024;
/** The largest project, in bytes. */
export const PROJECT_BYTES_LIMIT = 512 * 1024 * 1024;
/** Its files and directories: each takes an inode and a sync, so that 100,000 take a minute on a usual disk. */
export const PROJECT_ENTRIES_MAX = 100_000;
/** Bytes of a path in a project, and directories in one another: Linux takes 4,096 bytes in all, of which the data directory's are some. */
export const PROJECT_PATH_BYTES_MAX = 1024;
export const PROJECT_DEPTH_MAX = 64;
/** What a project's archive may have beside its files: headers and padding, at most 2.5 KiB an entry. */
export const PROJECT_HEADERS_BYTES_MAX = 256 * 1024 * 1024;
/** A line of input may carry white space that does not count; past this many raw bytes we refuse to look for its end. */
export const LINE_BYTES_LIMIT = 8 * 1024 * 1024;

/**
 * Arrays and objects in one another, of an item. Python's parser gives up at its recursion limit of 1,000, less the frames that
 * call it and the batch's own array: at about 985. assembly/json-lines.ts has the same number.
 */
export const ITEM_DEPTH_MAX = 900;
/** Characters of a JSON number in an item: Python reads integers of so many digits (`sys.get_int_max_str_digits()`). */
export const NUMBER_CHARACTERS_MAX = 4_300;

/**
 * `config` of a submission, and `predictor.config` of an API, as compact JSON. Each worker and each status carries it, and a
 * controller holds that of every job under way: 1,000 jobs are 256 MiB. Larger values belong into a file that `config` names.
 */
export const CONFIG_BYTES_MAX = 262_144;
/** ... and how deep: a worker merges the two configurations by recursion, and a hundred levels are read by nobody. */
export const CONFIG_DEPTH_MAX = 100;
/** `predictor.env`: Linux gives a process 2 MiB for its arguments and variables, and one variable 128 KiB. */
export const ENV_VARIABLES_MAX = 1_000;
export const ENV_BYTES_MAX = 128 * 1024;
/** Paths, addresses and keys in a configuration: Linux has 4,096 bytes for a path, and an address must fit into a request's head. */
export const CONFIG_TEXT_LENGTH_MAX = 1_024;
/** Each is compared with for each request. */
export const ORIGINS_MAX = 100;
export const SPLIT_APIS_MAX = 100;
/** Resources of an application: their names are in file names, of which Linux takes 255 bytes. */
export const RESOURCE_NAME_LENGTH_MAX = 128;
/** More than any machine has; sums of them stay exact. */
export const CPU_MILLIS_MAX = 100_000_000;
export const MEMORY_BYTES_MAX = 2 ** 50;
/** A body that is nested deeper is not parsed: all that may be in one is far flatter, and V8 takes 200 bytes a level. */
export const BODY_DEPTH_MAX = 10_000;
/** Entries of `store_paths`: each is listed by a request of its own, 8 at a time; a prefix stands for any number of files. */
export const STORE_PATHS_MAX = 100_000;
/** UTF-8 bytes of one path: Linux takes 4,096 for a file, stores 1,024 for a key. */
export const PATH_BYTES_MAX = 4_096 + "file://".length;
/** Characters of the name or ARN of a dead letter queue. */
export const QUEUE_NAME_LENGTH_MAX = 256;
/** What a caller gave is quoted to this many characters in messages: an answer is not larger than its request. */
export const QUOTED_LENGTH_MAX = 120;
/** Aliases in one YAML text: the parser looks for each one's anchor among all, so that 1,000 take 60 ms. */
export const YAML_ALIASES_MAX = 1_000;
/** Values that aliases may bring into one YAML text, those of their aliases included: 100,000 are checked in 0.2 s. */
export const YAML_COPIES_MAX = 100_000;
/** Characters of all embeds of one application together, with their args filled in: a template of 1 MB is small, a thousand embeds of it are not. */
export const EMBEDDED_TEXT_MAX = 4 * 1024 * 1024;

/** Errors shown in one answer (docs/contract/errors.md#errors-shown). */
export const ERRORS_SHOWN_MAX = 20;
/** Characters of an error's text, and of the text about one field: what was given is quoted in them, and may be megabytes. */
export const ERROR_TEXT_MAX = 8 * 1024;
export const FIELD_TEXT_MAX = 1024;

/** The event loop is left for others after this long, in what may go on for long: a tenth of what a request may wait. */
export const SLICE_MS = 10;
/**
 * A longer submission is read in a thread beside the event loop. 64 KiB take up to 5 ms, and a thread's start 100 ms; nearly all
 * submissions that name files are shorter.
 */
export const READ_HERE_BYTES_MAX = 64 * 1024;
/** ... within this time: 10 MiB of the smallest items take 2 s ... */
export const READ_ASIDE_LIMIT_MS = 60_000;
/** ... and this memory of the thread's: 10 MiB are 3.5 million empty objects at 56 bytes. */
export const READ_ASIDE_HEAP_MIB = 384;
/**
 * What waits for the thread: all bodies that may be held (CONTROL_BODIES_BYTES_MAX). It counts by itself, because a body is no longer
 * held when its connection ends, and may still wait then.
 */
export const ASIDE_WAITING_BYTES_MAX = 128 * 1024 * 1024;
/** A submission less its items: `config` and lists of paths, with room for their escapes. More would be read for nothing. */
export const SUBMISSION_HEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Keys of a submission's object: more than its legal ones by far, and few enough that each wrong one can be told of. */
export const SUBMISSION_KEYS_MAX = 100;
/** A longer configuration is refused: ten thousand times the usual one. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** APIs of one file: each is compared with all others, and they are recorded in one step of a few milliseconds. */
export const APIS_MAX = 500;
/** A configuration of more bytes is read in the thread: the reader takes 2 MB a second, and reads twice. */
export const CONFIG_READ_HERE_BYTES_MAX = 8 * 1024;

/** A frame's body, in bytes: large enough that the header costs nothing, small enough that a neighbour waits under 0.1 ms. */
export const FRAME_BODY_BYTES_MAX = 256 * 1024;
/** What a sender may have under way of one long body before the receiver grants more: four frames. */
export const STREAM_WINDOW_BYTES = 4 * FRAME_BODY_BYTES_MAX;
/** A body may not be reassembled past this many bytes. */
export const MESSAGE_BYTES_MAX = 512 * 1024 * 1024;
/**
 * An exception of user code as a fault: bytes of each field's JSON text as the worker sends it (python/quern_runtime/faults.py
 * cuts them and has the same numbers). Together they are 97 KiB, so that a fault always fits into a frame, and an ACK has room
 * for at least two. A message of 8 KiB is read by nobody to its end; a traceback of 24 KiB has some 150 calls; a detail is
 * an answer to a client, such as a list of 500 invalid fields.
 */
export const FAULT_TYPE_BYTES_MAX = 256;
export const FAULT_MESSAGE_BYTES_MAX = 8 * 1024;
export const FAULT_TRACEBACK_BYTES_MAX = 24 * 1024;
export const FAULT_DETAIL_BYTES_MAX = 64 * 1024;

/** A segment ends at whichever comes first. 1 MiB reads in under a millisecond; 8,192 batches are a bitmap of 1 KiB. */
export const SEGMENT_BYTES_TARGET = 1024 * 1024;
export const SEGMENT_BATCHES_MAX = 8192;
/** Group commit: at most this far apart. */
export const COMMIT_INTERVAL_MS = 5;
export const ENQUEUE_COMMIT_BYTES = 4 * 1024 * 1024;

/** Leased to one worker: about this much work, so that no batch waits long behind its neighbours. */
export const LEASED_WORK_US = 50_000;
/** ... and never more batches than this: at 125,000 batches/s a worker, two commit intervals and a round trip hold 1,500. */
export const CREDIT_BATCHES_MAX = 2048;
/** ... or bytes than this. */
export const CREDIT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * docs/contract/failing-batches.md#interruptions: a batch that lost its worker through no fault of its own this often
 * runs alone, and is charged.
 */
export const INTERRUPTIONS_MAX = 3;
/**
 * docs/contract/jobs.md#ends-early: deaths in a row with no batch in hand, and batches in a row lost to deaths, that
 * end a job.
 */
export const IDLE_DEATHS_MAX = 3;
export const DEADLY_BATCHES_MAX = 10;
/**
 * Workers of a job that broke the protocol, in all, that end it. Two may be the doing of a predictor that writes into files that
 * are not its own; the third would go on for ever.
 */
export const BROKEN_WORKERS_MAX = 3;
/** docs/contract/jobs.md#stop-grace: SIGTERM, then SIGKILL after this grace. */
export const STOP_GRACE_MS = 10_000;

/** Requests waiting for a real-time API's replicas, per replica, unless `max_replica_concurrency` says otherwise. */
export const REPLICA_CONCURRENCY_DEFAULT = 1024;
/** Outstanding predictions at one worker while they are far below a millisecond. */
export const PREDICTION_WINDOW_MAX = 128;
/** `predictor.timeout` of a real-time API that names none. */
export const PREDICTION_TIMEOUT_DEFAULT_MS = 60_000;

/**
 * A worker's log takes at most 32 MiB on disk. It is rotated at 8 MiB by the worker itself (the same number in
 * `quern_runtime/log_file.py`), with one older file beside it and a third one while it is copied: 24 MiB.
 */
export const LOG_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** What C code and child processes write is not seen by the worker: the server rotates at this size ... */
export const RAW_LOG_BYTES_MAX = 10 * 1024 * 1024;
/** ... and beyond this keeps LOG_FLOOD_KEPT_BYTES of it only: copying more would take longer than a writer at 1 GB/s allows. */
export const LOG_FLOOD_BYTES = 14 * 1024 * 1024;
export const LOG_FLOOD_KEPT_BYTES = 1024 * 1024;
/** A log that grows is looked at this often: a writer at 1 GB/s adds 8 MiB between two looks. */
export const LOG_LOOK_MS = 8;
/** A longer line is cut where it is written or shown. */
export const LOG_LINE_BYTES_MAX = 64 * 1024;
/** Logs of workers that have ended, for one API or one job; older ones are removed. */
export const FORMER_LOGS_KEPT = 10;
/** Page sizes of lists (docs/contract/jobs.md#list-of-jobs). */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 500;
/** Rows of a list that are read and sent at once: reasons have up to 20 KiB each. */
export const LIST_ROWS_AT_ONCE = 50;
/** A longer glob pattern is refused: matching takes pattern × path steps. */
export const GLOB_LENGTH_MAX = 1024;
/**
 * Patterns of one list, and their characters together: a path is matched against each, in steps of a pattern's length at worst. So
 * this bounds what one path may cost: 65,536 × 1,024 characters of a key at 6 ns, half a second, cut into slices.
 */
export const GLOBS_MAX = 1000;
export const GLOB_CHARACTERS_MAX = 65_536;
/** States of automata that one selection keeps: a kilobyte each. */
export const GLOB_STATES_KEPT = 2000;
/** `store_paths` of a submission, in characters together: 30,000 usual paths. They are sorted in one step, and stored with the job. */
export const STORE_PATHS_CHARACTERS_MAX = 2 * 1024 * 1024;
/** A compressed file may unpack to this many times its size (deflate reaches 1,032 at most; JSON lines rarely 50) ... */
export const COMPRESSION_RATIO_MAX = 1100;
/** ... once it has given this many bytes. */
export const COMPRESSION_FREE_BYTES = 64 * 1024 * 1024;
/**
 * Zstandard: how far back a file may refer, all of which is held in memory. `zstd --long` needs 128 MiB; every level without `--ultra` needs
 * 8 MiB at most, as any decompressor should have (RFC 8878). Of larger windows two are held at once: 256 MiB.
 */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;
export const ZSTD_COMMON_WINDOW_BYTES = 8 * 1024 * 1024;
export const LARGE_WINDOWS_MAX = 2;
/** docs/contract/submitting.md#slow-listing: a listing that takes longer for its first match is accepted. */
export const FIRST_MATCH_MS = 10_000;
/** docs/contract/submitting.md#idempotency-key: how long an `Idempotency-Key` is remembered, and how long it may be. */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000;
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;
/**
 * Server-sent events of a job: looked for this often, and sent at least this often while it runs
 * (docs/contract/jobs.md#job-events).
 */
export const EVENT_LOOK_MS = 200;
export const EVENT_EVERY_MS = 1000;
/** docs/contract/failing-batches.md#stalled: a worker that waits for compute for longer than this is stalled. */
export const STALLED_AFTER_MS = 600_000;
/** A store's connection that says nothing for this long is given up, and tried again. */
export const STORE_SILENCE_MS = 15_000;
/** A page of a store's listing: 1,000 keys of 1,024 bytes, each byte as `%XX`, with some 300 bytes of XML each, come to 3.4 MB. */
export const STORE_PAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Objects, arrays and members in a page of JSON: 1,000 objects of two members each; 100 each where a store says more than it was asked. */
export const STORE_PAGE_VALUES_MAX = 100_000;
/** What a store says of an error: no store has more than a kilobyte or two to say. */
export const STORE_ERROR_BYTES_MAX = 256 * 1024;
/** What SQS answers: some hundred bytes for each of ten letters. */
export const SQS_ANSWER_BYTES_MAX = 256 * 1024;
/** How long a job waits for a store that does not answer, since it last did: longer than a restart or an outage of minutes. */
export const STORE_PATIENCE_MS = 15 * 60_000;
/** The longest pause between two tries of a store. */
export const STORE_PAUSE_MAX_MS = 15_000;
/** Prefixes of a submission that are listed at the same time, where listing waits for a network. */
export const PARALLEL_LISTINGS = 8;
/** SQS: messages of one SendMessageBatch, and the bytes of bodies and attributes together that every queue takes. */
export const LETTERS_A_REQUEST = 10;
export const LETTER_BYTES_MAX = 262_144;
/** Old jobs are looked for this often, so many at once; their rows go in statements of a few milliseconds. */
export const PRUNE_EVERY_MS = 3_600_000;
export const PRUNED_JOBS_AT_ONCE = 100;
export const PRUNED_ROWS_AT_ONCE = 1000;
/** The body of a redrive must be smaller than this many bytes. */
export const REDRIVE_BYTES_LIMIT = 64 * 1024;
/** A stream that is silent this long gets a comment or an empty line, before proxies cut it off (60 s is common). */
export const STREAM_HEARTBEAT_MS = 15_000;
/** An async call or a generator that was told to end has this long before its worker is replaced. */
export const CANCEL_GRACE_MS = 2_000;
/** Bodies of requests that a gateway holds at once, in bytes, announced ones included; more where --max-body is more. */
export const HELD_BODIES_BYTES_MAX = 512 * 1024 * 1024;
/**
 * A body of over SMALL_BODY_BYTES that holds room must go on coming: so much of what it holds in each so long. At this pace it
 * would take ten minutes, twice as long as a request may.
 */
export const BODY_PACE_MS = 15_000;
export const BODY_PACE_SHARE = 1 / 40;
/** Of these, kept for small bodies: 1,000 of them, while large ones that were announced come slowly or not at all. */
export const HELD_SMALL_BODIES_BYTES = 64 * 1024 * 1024;
export const SMALL_BODY_BYTES = 64 * 1024;
/** Bodies of submissions that a controller holds at once: twelve of the largest, or 128 small ones beside ten. */
export const CONTROL_BODIES_BYTES_MAX = 128 * 1024 * 1024;
export const CONTROL_SMALL_BODIES_BYTES = 8 * 1024 * 1024;
/**
 * Requests that one connection may have sent ahead of their answers. Node takes 1,500 of them at once, which kept all others waiting for
 * seconds; load generators send up to twenty ahead, clients none.
 */
export const REQUESTS_OF_A_CONNECTION_MAX = 20;
/** Handshakes of TLS under way on one listener of a gateway: 60 KB each, and five seconds of work for a core. */
export const HANDSHAKES_MAX = 1_000;
/** Of names that a gateway has not heard of, callers without a key have the controller asked for so many at a time: 1.2 ms each in both. */
export const STRANGERS_ASKED_FOR_MAX = 8;
/**
 * Streams that one key has open: events of jobs and logs that are followed. Each asks the database or the disk five times a second, 0.1 ms
 * each: a hundred take a twentieth of a core, and all that may be open a quarter.
 */
export const STREAMS_OF_A_KEY_MAX = 100;
export const STREAMS_MAX = 500;
/** Whether the key of an open stream still opens anything is looked at this often: revocation is to end it within 2 s. */
export const STREAM_LOOK_MS = 500;
/**
 * After a failure an issuer's keys are not asked for again for so long, twice as long with each failure: an issuer that is down is asked
 * twice a minute by each gateway, however many tokens come, and one that was restarted serves again within a second or two.
 */
export const JWKS_COOLDOWN_FIRST_MS = 1_000;
export const JWKS_COOLDOWN_MAX_MS = 30_000;
/** Some 500 keys; issuers have two or three. */
export const JWKS_BYTES_MAX = 1024 * 1024;
/**
 * Signatures that a gateway remembers, some 100 bytes each: 40 MB. One access key alone may sign 440 requests a second before its window
 * becomes shorter than 15 minutes; at 10,000 a second it is 40 s.
 */
export const SIGNATURES_MAX = 400_000;
/** A signature's clock has seconds: what is equal and was signed in one second comes twice within this, over a slow network too. */
export const REPEATED_SIGNATURE_MS = 5_000;
/** Lines of one kind (5xx answers of one code, refused changes) in so long; more are counted: two a second, some 300 bytes each. */
export const FLOOD_LINES_MAX = 20;
export const FLOOD_WINDOW_MS = 10_000;
/** Kinds that are counted apart: 2,000 lines in a window at most. What is beyond shares one. */
export const FLOOD_KINDS_MAX = 100;
/** A path that anyone may send has up to 16 KiB; the first characters say what was meant. */
export const LOGGED_PATH_LENGTH_MAX = 256;
/**
 * The audit of changes: a line has 200 to 800 bytes, so that five files of 8 MiB have 50,000 to 200,000 changes. Requests that were refused are
 * in files of their own, so that whoever has no key cannot push out what those with keys did: 8 MiB are an hour of the worst flood.
 */
export const AUDIT_FILE_BYTES_MAX = 8 * 1024 * 1024;
export const AUDIT_FILES_MAX = 5;
export const AUDIT_REFUSED_FILE_BYTES_MAX = 4 * 1024 * 1024;
export const AUDIT_REFUSED_FILES_MAX = 2;
/** The audit is looked at this often for those who follow it. */
export const AUDIT_LOOK_MS = 500;
/**
 * docs/contract/configuration.md#scaled-to-zero: how long a request waits for the first replica of an API that was
 * scaled to zero.
 */
export const WAKE_UP_MS = 300_000;
/** The longest duration of a configuration: a day less than the longest timer that Node has (2^31 ms, 24.8 days). */
export const DURATION_MS_MAX = 23 * 86_400_000;
/** Replicas of one API: a third of the processes that Linux gives by default. */
export const REPLICAS_MAX = 10_000;
/** `threads_per_process`: each takes a stack, and Linux gives a process about 32,000. */
export const THREADS_MAX = 10_000;
/** Replicas of an API that names no maximum. */
export const MAX_REPLICAS_DEFAULT = 100;
/** Classes that a gateway counts apart for one API; all others count as `(others)`: 100 rows an hour, 100 labels. */
export const CLASSES_COUNTED_MAX = 100;
/** A class of more characters counts as `(others)`: longer labels are texts, and a hundred of them make each report long. */
export const CLASS_LENGTH_MAX = 128;
/** The numbers of `quern get` cover two weeks, as Cortex's did. */
export const METRICS_KEPT_MS = 14 * 86_400_000;
export const METRICS_PRUNE_EVERY_MS = 3_600_000;
/** The parent asks its children this often whether they still answer: five times before its verdict, at 50 microseconds each. */
export const HEARTBEAT_MS = 2_000;
/**
 * A gateway or controller that is silent for longer is replaced. The budget of a synchronous step of ours is a second: what takes longer is cut
 * into pieces, or done in a thread, as the check of the database is. So this hits a stopped process or an endless loop only, also on a machine
 * that is ten times as slow.
 */
export const CHILD_SILENT_MAX_MS = 10_000;
/** ... while it starts: migrations and the recovery of a large log are single steps of SQLite. */
export const CHILD_START_SILENT_MAX_MS = 120_000;
/** A child that ends is started again: at once, then later and later, up to this. */
export const CHILD_RESTART_FIRST_MS = 20;
export const CHILD_RESTART_MAX_MS = 10_000;
/** A database that another process has locked is tried again after this, then later and later: a try takes microseconds. */
export const LOCK_RETRY_FIRST_MS = 2;
export const LOCK_RETRY_MAX_MS = 100;
/** Whoever holds the lock for longer is worth a line in the log: a backup or a shell that was left open. */
export const LOCK_TOLD_MS = 2_000;
/** A larger database is checked beside the start, not before it: a cold disk reads 100 MB a second. */
export const QUICK_CHECK_WAIT_BYTES = 1024 ** 3;
/**
 * Added to the `oom_score_adj` of each worker: the kernel takes it for one that uses half of the machine's memory more, and the server's own
 * processes use far less than half.
 */
export const WORKER_OOM_SCORE = 500;
/** The runtime directory is looked at this often: less than a request waits for a controller that does not listen (5 s). */
export const RUNTIME_LOOK_MS = 2_000;

/** OpenID Connect Core, section 2: a subject has at most this many characters. */
export const TOKEN_SUBJECT_CHARACTERS_MAX = 255;
/**
 * A request's head at the controller, in bytes. Gateways take 16 KiB (Node's own limit) and add what a token opens: a claim of
 * 12 KiB makes up to 40 KiB of it.
 */
export const CONTROLLER_HEAD_BYTES_MAX = 128 * 1024;
