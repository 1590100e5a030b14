/** Real-time predictions: bodies, queues, deadlines, and the numbers that are kept about them. */

/** The largest body of a real-time prediction, in bytes, unless `--max-body` says otherwise. */
export const PREDICTION_BYTES_LIMIT_DEFAULT = 100 * 1024 * 1024;
/** Requests waiting for a real-time API's replicas, per replica, unless `max_replica_concurrency` says otherwise. */
export const REPLICA_CONCURRENCY_DEFAULT = 1024;
/** Predictions in flight at one worker while each takes far less than a millisecond. */
export const PREDICTION_WINDOW_MAX = 128;
/** The default of `predictor.timeout` for a real-time API. */
export const PREDICTION_TIMEOUT_DEFAULT_MS = 60_000;
/**
 * Requests past their deadline that one look fails, 40 times a second: 10 ms of work. Those that waited for a first
 * replica have one deadline, and up to 30,000 may.
 */
export const EXPIRED_AT_ONCE_MAX = 500;
/** Requests at a replica that died which one turn of a gateway's event loop fails: 1 ms of work. */
export const LOST_AT_ONCE_MAX = 64;
/** An async call or a generator that was cancelled has this long to end before its worker is replaced. */
export const CANCEL_GRACE_MS = 2_000;
/**
 * docs/contract/configuration.md#scaled-to-zero: how long a request waits for the first replica of an API that was
 * scaled to zero.
 */
export const WAKE_UP_MS = 300_000;
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
