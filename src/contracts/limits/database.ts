/** The database: locks that other processes hold, and its check before the start. */

/**
 * Pauses before a database that another process has locked is tried again. They grow, and one try takes microseconds.
 */
export const LOCK_RETRY_FIRST_MS = 2;
export const LOCK_RETRY_MAX_MS = 100;
/** A lock that is held longer is logged: a backup, or a shell that was left open. */
export const LOCK_TOLD_MS = 2_000;
/** Changes that share a commit of SQLite, if they wait together and take less than SLICE_MS. */
export const CHANGES_TOGETHER_MAX = 64;
/** A larger database is checked during the start and not before it: a cold disk reads 100 MB a second. */
export const QUICK_CHECK_WAIT_BYTES = 1024 ** 3;
/** A migration that moves rows commits after this time. A commit takes up to 5 ms, and the log stays short. */
export const MOVED_AT_ONCE_MS = 100;
/** A migration that moves rows logs its progress this often. */
export const MOVED_TOLD_MS = 5_000;

/** PostgreSQL. A connection that is not ready after this time is given up: a paused server accepts and says nothing. */
export const POSTGRES_CONNECT_MS = 5_000;
/**
 * A statement that has no answer after this time loses its connection, so a half-open one is noticed. The server itself
 * cancels statements after the shorter time, so a slow one keeps its connection. The slowest of Quern's own take 0.1 s.
 */
export const POSTGRES_STATEMENT_MS = 20_000;
export const POSTGRES_SLOW_STATEMENT_MS = 15_000;
/** The same during a migration, which may change each row of a table. */
export const POSTGRES_MIGRATION_MS = 3_600_000;
/** A session of PostgreSQL that waits for us within a transaction holds locks, and ends after this time. */
export const POSTGRES_IDLE_MS = 30_000;
/** Keepalive, on both sides. The server gives up a dead client after 10 + 3 × 5 s, and frees its locks. */
export const POSTGRES_KEEPALIVE_S = 10;
export const POSTGRES_KEEPALIVE_INTERVAL_S = 5;
export const POSTGRES_KEEPALIVE_COUNT = 3;
/** Pauses between attempts to connect, and before work that was rolled back runs again. They grow. */
export const POSTGRES_RECONNECT = { firstMs: 50, maxMs: 2_000 };
export const POSTGRES_AGAIN = { firstMs: 5, maxMs: 1_000 };
/** How long a request waits for a database that cannot be reached. Clients and proxies wait for 30 s or more. */
export const DATABASE_WAIT_MS = 10_000;
/** The same for work that shuts down. A controller must leave within 20 s. */
export const DATABASE_LEAVING_MS = 3_000;
/** A statement without an answer for this long is reported: the database hangs. */
export const DATABASE_HANGS_MS = 3_000;
/** How long a start waits for the session of a former controller: after a kill -9 it ends within its statement. */
export const DATABASE_TAKEN_WAIT_MS = 30_000;
/**
 * The lease of the server that has the database (docs/decisions/0037-standby.md). A server that does not renew it for
 * the longer time loses the database to one that waits. Two renewals may fail: a turn of the event loop takes 1 s at
 * most. A takeover takes 10 s at most, of which a start needs three.
 */
export const DATABASE_RENEW_MS = 2_000;
export const DATABASE_LEASE_MS = 6_000;
/** A renewal takes a millisecond. One without an answer for this long loses its connection. */
export const POSTGRES_RENEWAL_MS = 3_000;
/** A server that waits looks at the lease this often: two statements that read. */
export const DATABASE_STANDBY_POLL_MS = 500;
/** Its statements have these limits: a connection that hangs must not delay the takeover for long. */
export const POSTGRES_STANDBY = { serverMs: 4_000, clientMs: 5_000 };
/**
 * How long the lock must be free. Its holder connects again within 2 s of a restart of PostgreSQL (POSTGRES_RECONNECT).
 */
export const DATABASE_LOCK_FREE_MS = 3_000;

/** The series behind the plots (docs/contract/operations.md#series): minutes for a day, hours for two weeks. */
export const MINUTES_KEPT_S = 86_400;
export const HOURS_KEPT_S = 14 * 86_400;
/** The points of a series in one response: with all metrics 200 KB. */
export const SERIES_POINTS_MAX = 1_500;
/** Without `step` there are at most so many points: as many as a plot has room for. */
export const SERIES_POINTS_DEFAULT = 400;
/** Series whose minutes of an hour become one row in the same commit: 1,200 rows, 20 ms. */
export const SERIES_ROLLED_AT_ONCE = 20;
/** Jobs whose batches go into the series in the same commit: 500 statements, 5 ms. */
export const SERIES_COUNTED_AT_ONCE = 250;
/** Changes of an API that an explanation reads: versions and replicas that ended, of some hours. */
export const CHANGES_READ_MAX = 500;
/** Old rows of series that one statement deletes. */
export const SERIES_DELETED_AT_ONCE = 500;
