/** The logs of workers and of the server, and the audit of changes. */

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
/** 100,000 submissions and changes of jobs: they cannot push out the changes of keys and APIs either. */
export const AUDIT_JOBS_FILE_BYTES_MAX = 8 * 1024 * 1024;
export const AUDIT_JOBS_FILES_MAX = 4;
export const AUDIT_REFUSED_FILE_BYTES_MAX = 4 * 1024 * 1024;
export const AUDIT_REFUSED_FILES_MAX = 2;
/** The access log: about a million lines in each of two files. */
export const ACCESS_FILE_BYTES_MAX = 256 * 1024 * 1024;
export const ACCESS_FILES_MAX = 2;
/** How long a line of the access log waits for others. */
export const ACCESS_FLUSH_MS = 200;
/** Lines that wait for a disk that is full or slow, in each gateway. Further ones are counted. */
export const ACCESS_WAITING_BYTES_MAX = 4 * 1024 * 1024;
/** How often the audit is polled for clients that follow it. */
export const AUDIT_POLL_MS = 500;
