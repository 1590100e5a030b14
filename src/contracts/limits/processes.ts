/** The processes of the server: how they are watched and restarted. */

/**
 * How often a child tells the parent that it responds: a silent one is replaced when the third time has passed. While
 * nothing else happens, the server wakes up for this and for what else falls on the same instants.
 */
export const HEARTBEAT_MS = 4_000;
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
 * With several gateways, how many connections of a listener wait in the parent for each gateway
 * (docs/decisions/0002-listening-socket.md). So 500 that come together are dealt evenly even if one of two gateways is
 * busy. All take a quarter of the files at most.
 */
export const CONNECTIONS_QUEUED_MAX = 250;
/**
 * Added to the `oom_score_adj` of each worker. The kernel then counts a worker as if it used half of the machine's
 * memory more. The server's own processes use far less than half.
 */
export const WORKER_OOM_SCORE = 500;
/**
 * How often the runtime directory is checked: less than the 5 s that a request waits for a controller that does not
 * listen.
 */
export const RUNTIME_POLL_MS = 4_000;
/**
 * A template forks the workers of a version (docs/decisions/0032-worker-templates.md). It ends this long after the last
 * start, once its workers have ended: 10 MB each. A version gets one if two of its workers start within this time.
 */
export const TEMPLATE_KEEP_MS = 60_000;
export const TEMPLATES_MAX = 8;
/** A fork takes milliseconds. A template that is silent for longer is killed, and the worker starts as a process. */
export const TEMPLATE_SILENT_MAX_MS = 10_000;
/**
 * How many descriptors the controller keeps from workers of jobs: for 32 requests at once, its listener, and files that
 * it opens for a moment. Where it may open few, three eighths of them.
 */
export const FILES_FOR_REQUESTS = 48;
/** What a worker may open at the controller while it starts: pipes or sockets, its log, its connection. */
export const FILES_OF_A_START = 5;
/** What it may open later, beside what is counted: the file of its rows. */
export const FILES_OF_A_WORKER = 1;
