/** The database: locks that other processes hold, and its check before the start. */

/**
 * Pauses before a database that another process has locked is tried again. They grow, and one try takes microseconds.
 */
export const LOCK_RETRY_FIRST_MS = 2;
export const LOCK_RETRY_MAX_MS = 100;
/** A lock that is held longer is logged: a backup, or a shell that was left open. */
export const LOCK_TOLD_MS = 2_000;
/** A larger database is checked during the start and not before it: a cold disk reads 100 MB a second. */
export const QUICK_CHECK_WAIT_BYTES = 1024 ** 3;
/** A migration that moves rows commits after this time. A commit takes up to 5 ms, and the log stays short. */
export const MOVED_AT_ONCE_MS = 100;
/** A migration that moves rows logs its progress this often. */
export const MOVED_TOLD_MS = 5_000;
