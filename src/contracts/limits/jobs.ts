/** Running jobs: their number, segments, commits, credit, deaths of workers, messages to queues, events and retention. */

/**
 * Jobs that have not ended, of all APIs: 28 to 47 KB each, 235 MB in all, and together a tenth of a core. An API alone
 * may have two thirds of them.
 */
export const JOBS_UNFINISHED_MAX = 5_000;
/** Jobs of an API that go on or pause together begin or leave so many in a turn of the event loop: 1 ms. */
export const JOBS_BEGUN_AT_ONCE_MAX = 16;
/**
 * A job asks for the compute of all its workers at once, up to what the machine has, which may be a thousand. While
 * more asks than this wait, at 2 KB each, it asks for one worker after the other.
 */
export const COMPUTE_ASKS_MANY = 2_000;
/** A round of the scheduler that takes longer, as with some hundred asks, is followed by a pause. */
export const COMPUTE_ROUND_SHORT_MS = 1;
/** `priority` of a job is from minus this to this. */
export const JOB_PRIORITY_MAX = 100;
/** While somebody waits for compute, the scheduler decides this often again: 2 ms for each 1,000 jobs that wait. */
export const COMPUTE_PLAN_MS = 500;
/** A worker is not asked to yield before it has worked ten times as long as its start took, so yields cost a tenth. */
export const WORKS_PER_START = 10;
export const WORKS_AT_LEAST_MS = 2_000;
/**
 * A segment ends at the first of these limits. 1 MiB is read in less than a millisecond; 8,192 batches are a bitmap of
 * 1 KiB.
 */
export const SEGMENT_BYTES_TARGET = 1024 * 1024;
export const SEGMENT_BATCHES_MAX = 8192;
/**
 * ... or when its row has about so much text about pieces of files, some 200 files. SQLite copies the whole row for each
 * comparison of a search, so each reading of it and each commit that settles batches costs with the length: 10 ms with
 * 2.6 MiB, 0.1 ms with this. A batch is never cut: a segment of one batch with very many small files has more.
 */
export const SEGMENT_RANGES_BYTES_TARGET = 64 * 1024;
/** The pieces of files of one batch in that row: lines of some 10,000 files. */
export const BATCH_FILES_BYTES_MAX = 2 * 1024 * 1024;
/** The longest interval between two group commits. */
export const COMMIT_INTERVAL_MS = 5;
export const ENQUEUE_COMMIT_BYTES = 4 * 1024 * 1024;
/**
 * Jobs that enqueue at once, in all and of one API; jobs whose items came with them are counted separately. A job holds
 * up to 15 MiB of paths and buffers then: with all places taken by the largest selections that are 240 MiB. Jobs of one
 * API whose store does not respond leave places for those of others.
 */
export const ENQUEUING_MAX = 16;
export const ENQUEUING_OF_AN_API_MAX = 4;
/**
 * docs/contract/jobs.md#enqueued-at-once: how long a job that others wait for enqueues at once. A turn that comes no
 * further is followed by one of twice the length, up to this one.
 */
export const ENQUEUING_TURN_MS = 30_000;
export const ENQUEUING_TURN_MAX_MS = 16 * 60_000;
/**
 * docs/contract/jobs.md#deaths-while-enqueuing: how often in a row a controller may die while it enqueues a job, without
 * getting further. A job that has used up the first of them enqueues beside no other such job.
 */
export const ENQUEUING_DEATHS_BESIDE_OTHERS = 3;
export const ENQUEUING_DEATHS_MAX = 6;
/** A controller that lives for so long in a turn does not die of it: the turn is not counted, and the next job begins. */
export const ENQUEUING_SURVIVED_MS = 60_000;
/**
 * Pieces of files that a job keeps in memory between its turns, up to 1 KB each: the lines of a segment that is not
 * complete. If there are more of them, these lines are read again.
 */
export const RANGES_KEPT_MAX = 16;
/** Work leased to one worker: about this much, so that no batch waits long for those before it. */
export const LEASED_WORK_US = 50_000;
/**
 * ... and at most this many batches: at 125,000 batches/s per worker, two commit intervals and a round trip hold 1,500.
 */
export const CREDIT_BATCHES_MAX = 2048;
/** ... and at most this many bytes. */
export const CREDIT_BYTES_MAX = 4 * 1024 * 1024;
/**
 * docs/contract/isolation.md#batch-size: the items of a batch that may be split. Its parts are in memory during the
 * search, some 200 bytes each, and are written in one commit when it ends: 5,000 take 11 ms of CPU.
 */
export const SPLIT_ITEMS_MAX = 5_000;
/** Batches of a job are searched at the same time until they have this many items together; the others wait. */
export const SEARCHED_ITEMS_MAX = 20_000;
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
/**
 * docs/contract/failing-batches.md#error-budget: errors of failed batches that a run of a job keeps whole, together. An
 * error has up to 32 KiB, mostly 1 KiB: that is 2,000 of the longest, or 60,000. Beyond it a failure takes 200
 * to 860 bytes of the database, so 10 MB of items that all fail take 4.3 GB at most. One error of each new kind is still
 * whole: 3 MiB.
 */
export const ERRORS_WHOLE_BYTES_MAX = 64 * 1024 * 1024;
export const ERROR_CUT_LENGTH = 256;
export const ERROR_KINDS_WHOLE_MAX = 100;
/** docs/contract/jobs.md#stop-grace: SIGTERM, then SIGKILL after this grace. */
export const STOP_GRACE_MS = 10_000;
/** If a stop is not recorded after this, its user hears whether the disk is full. */
export const STOP_RECORD_MS = 3_000;
/**
 * How long a worker with `reuse_worker` waits for the next job of its version, and how long its `atexit` functions may
 * take then.
 */
export const WARM_WORKER_MS = 60_000;
export const WARM_STOP_GRACE_MS = 10_000;
/** How long it may take to reply to the next job, before another process is started instead. */
export const WARM_REPLY_MS = 5_000;
/** docs/contract/failing-batches.md#stalled: a worker that waits for compute for longer than this is stalled. */
export const STALLED_AFTER_MS = 600_000;
/**
 * Events of a job: how often its state is polled, and the longest interval between two events while it runs
 * (docs/contract/jobs.md#job-events).
 */
export const EVENT_POLL_MS = 200;
export const EVENT_EVERY_MS = 1000;
/**
 * Rows of single batches that one statement reads: from an index alone in 5 ms, or rows of up to 97 KiB that are passed
 * to find a failed batch.
 */
export const CHARGED_ROWS_AT_ONCE = 5_000;
export const PASSED_ROWS_AT_ONCE = 100;
/**
 * How often old jobs are removed. One statement looks at so many jobs in 1 ms. It deletes so many rows in some
 * milliseconds: a segment has a few KiB, and a failed batch up to 97 KiB.
 */
export const PRUNE_EVERY_MS = 3_600_000;
export const AGED_JOBS_AT_ONCE = 100;
export const PRUNED_SEGMENTS_AT_ONCE = 1000;
export const PRUNED_BATCHES_AT_ONCE = 100;
/** Old messages that one statement finds or deletes: up to 256 KiB each. */
export const LETTERS_AGED_AT_ONCE = 100;
/** Characters of a job's config that is kept with its record after the retention. A record has some hundred bytes. */
export const CONFIG_KEPT_LENGTH_MAX = 1024;
/** Jobs that a start continues together: a commit has up to 64 changes. */
export const CONTINUED_AT_ONCE = 100;
/** Jobs of a deleted API that one statement stops, in 2 ms. */
export const CLOSED_JOBS_AT_ONCE = 100;
/** SQS: messages in one SendMessageBatch, and the total bytes of bodies and attributes that every queue accepts. */
export const LETTERS_A_REQUEST = 10;
export const LETTER_BYTES_MAX = 262_144;
/**
 * Queues of SQS that are sent to at once, in all and of one API: 2.5 MiB of messages and 7 ms of work each, and 10 s if
 * SQS does not respond.
 */
export const SQS_QUEUES_AT_ONCE = 16;
export const SQS_QUEUES_OF_AN_API_AT_ONCE = 4;
/**
 * A queue that does not respond is tried again after this time, then after twice as long as before, up to the short
 * pause. If an API has more such queues than 7, each one pauses longer: 1,000 of them are tried every half an hour.
 */
export const SQS_PAUSE_FIRST_MS = 1_000;
export const SQS_PAUSE_SHORT_MS = 15_000;
export const SQS_PAUSE_OF_A_QUEUE_MS = 2_000;
export const SQS_PAUSE_MAX_MS = 3_600_000;
/** After a failure, the place of the queue is free this much later: an API fails at most four times a second. */
export const SQS_FAILED_PLACE_MS = 1_000;
/** docs/contract/failing-batches.md#sqs-delivery: messages are given up after this time. SQS keeps them for as long. */
export const SQS_GIVEN_UP_MS = 14 * 24 * 3_600_000;
/**
 * Clients of SQS that are kept, one per region. A client takes 38 KB, and a caller may name a new region in each
 * submission. A machine's jobs use queues of one or two regions; the client used least recently goes.
 */
export const SQS_CLIENTS_MAX = 10;
/** Addresses of SQS queues that are kept: some 300 bytes each. One that is not kept costs one more request. */
export const SQS_ADDRESSES_MAX = 1_000;
/** Dead letter queues that the metrics count separately: 100 labels. All others count as `(others)`. */
export const QUEUES_COUNTED_MAX = 100;
/** The body of a response of SQS: some hundred bytes for each of ten messages. */
export const SQS_ANSWER_BYTES_MAX = 256 * 1024;
/** Entries of an index of jobs that one statement of a list of all APIs looks at: 2 ms. */
export const JOBS_LISTED_AT_ONCE = 5_000;
/** Jobs among which an explanation of a time looks for those that began then: 20 ms. */
export const BEGUN_JOBS_READ_MAX = 5_000;
/** Rows of a job's workers over time: further workers are counted in the last one. With all of them 250 KB are shown. */
export const WORKER_SPANS_MAX = 1_000;
/** The last rounds of a job that are kept, beside its first: with their reasons, 100 KB are shown. */
export const ROUNDS_KEPT_MAX = 200;
/** A round keeps so much of the reason why it ended, and of the text that selected its batches. */
export const ROUND_REASON_LENGTH_MAX = 300;
