/** Requests that the server holds at once: connections, heads and bodies. */

/**
 * Requests that a gateway holds at once, in bytes: their bodies, including large announced ones, and of predictions
 * also their heads and REQUEST_BYTES. It is more if --max-body is more.
 */
export const HELD_BODIES_BYTES_MAX = 512 * 1024 * 1024;
/** What a prediction holds beside its head and its body until it is answered, in bytes. */
export const REQUEST_BYTES = 8 * 1024;
/** A head of this size, as it is counted, does not make a small body a large one. */
export const USUAL_HEAD_BYTES = 8 * 1024;
/** A head of up to this size, as it is counted, may stay with its request after the answer. */
export const SHORT_HEAD_BYTES = 2 * 1024;
/**
 * A body must not stall: in each period, this share of its announced bytes must arrive. At this pace it would take ten
 * minutes, twice as long as a request may. One timer checks all small bodies of predictions, up to a period late. Other
 * small bodies may stall: only what has arrived of them counts, and it counts to their sender.
 */
export const BODY_PACE_MS = 15_000;
export const BODY_PACE_SHARE = 1 / 40;
/**
 * The part of HELD_BODIES_BYTES_MAX that is kept for small bodies: 1,000 of them, even while large announced bodies
 * arrive slowly or not at all.
 */
export const HELD_SMALL_BODIES_BYTES = 64 * 1024 * 1024;
export const SMALL_BODY_BYTES = 64 * 1024;
/**
 * Bodies of copies for shadows that a gateway holds, in bytes: an eighth of what it holds for callers. It is more if
 * --max-body is more, so that any body can be copied. A shadow may hold twice as much as stays free for others.
 */
export const SHADOW_COPIES_BYTES_MAX = HELD_BODIES_BYTES_MAX / 8;
/** Bodies of submissions that a controller holds at once: twelve of the largest, beside 128 small ones. */
export const CONTROL_BODIES_BYTES_MAX = 128 * 1024 * 1024;
export const CONTROL_SMALL_BODIES_BYTES = 8 * 1024 * 1024;
/**
 * Pipelined requests of one connection. Node takes 1,500 of them at once, which delayed all other requests by seconds.
 * Load generators pipeline up to twenty, clients none.
 */
export const REQUESTS_OF_A_CONNECTION_MAX = 20;
/**
 * How long one turn of a gateway's event loop reads connections, in milliseconds: 200 refused requests. A turn of
 * ordinary load is shorter. Beyond that it reads what it has begun, up to 20 requests or 64 KiB, and all connections
 * wait for later turns.
 */
export const READING_OF_A_TURN_MS = 20;
/** What a byte can cost at most, in milliseconds. Chunks of one byte cost 0.0004 for each byte on the wire. */
export const READING_OF_A_BYTE_MS = 0.001;
/** Half of what a client's connections have cost is forgotten after this time. Those that cost least are read first. */
export const READING_COST_HALF_MS = 10_000;
/** Clients whose costs are remembered: 150 bytes each. */
export const READING_COSTS_MAX = 10_000;
/**
 * How long a gateway only accepts connections while others wait, in milliseconds: 100 of them. As much time for the
 * others follows.
 */
export const ACCEPTING_MS = 20;
/**
 * How long it waits then for the next connection that the parent deals: a round trip of some 0.3 ms, and longer while all
 * processors are busy.
 */
export const DEALT_PATIENCE_MS = 3;
/**
 * Connections that the turn after such a one reads again: 20 ms of work if each has sent 20 requests. A turn that takes
 * less is followed by one with twice as many, and one that does not come to all of them by one with as many as it read.
 */
export const CONNECTIONS_READ_AGAIN = 8;
/** Parameters in a request's query. PHP and Django have the same limit. */
export const QUERY_PARAMETERS_MAX = 1_000;
/**
 * Headers of a request: browsers and proxies send up to 60. A head of 16 KiB could have 2,000, which take 0.75 ms and
 * 250 KB as long as the request waits. The same bound holds for headers that arrive before the head ends, and for
 * trailers.
 */
export const HEADERS_OF_A_REQUEST_MAX = 200;
/** TLS handshakes in progress on one listener of a gateway: 60 KB each, and five seconds of work for a core. */
export const HANDSHAKES_MAX = 1_000;
/**
 * TLS handshakes of which one turn of a gateway's event loop handles a message, of all listeners, and how long it does so
 * at most, in milliseconds. The first one takes a signature: 0.5 ms with a key of RSA-2048, 4 ms with RSA-4096, 0.1 ms
 * with P-256. The next one takes 2 ms with TLS 1.2 and P-384.
 */
export const HANDSHAKES_OF_A_TURN_MAX = 16;
export const HANDSHAKING_OF_A_TURN_MS = 10;
/** What a TLS client may send until its handshake is over, in bytes: with post-quantum keys it is 2 KB. */
export const HANDSHAKE_BYTES_MAX = 16 * 1024;
/** What a gateway reads of a TLS connection at once, in bytes: a record of the largest size takes two of them. */
export const TLS_PIECE_BYTES = 16 * 1024;
/**
 * What a client may send over TLS without a byte of data, in bytes: 2,400 changes of its key, 25 ms of work. Clients
 * change it once in some gigabytes. A record whose end is missing counts, too; it has up to 16 KiB.
 */
export const SILENT_RECORDS_BYTES_MAX = 64 * 1024;
/** The time for a TLS handshake. */
export const HANDSHAKE_MS = 20_000;
/** Late connections that one turn of a gateway's event loop closes: 5 ms of work. */
export const LATE_AT_ONCE_MAX = 64;
/**
 * Open connections of one listener of a gateway, and at most a third of the files that it may open. Each holds 15 KB, and
 * up to 16 KB more while its head arrives.
 */
export const CONNECTIONS_MAX = 10_000;
/** With TLS each holds 53 KB, and 100 KB with a whole head of 200 headers: 600 MB together. */
export const TLS_CONNECTIONS_MAX = 6_000;
/**
 * Beyond CONNECTIONS_MAX, a new connection closes one of the owner (a key, or an address without one) that has most, if
 * it has more than this part of all: a sixteenth. Sixteen addresses are needed to lock others out.
 */
export const CONNECTIONS_SHARE = 16;
/** A connection without a request counts as idle after this time: its first request may be on its way. */
export const CONNECTION_NEW_MS = 1_000;
/** How many of them a new connection looks at to find an idle one: 10 us of work. */
export const CONNECTIONS_LOOKED_AT_MAX = 100;
/**
 * How many requests for names that a gateway does not know are forwarded to the controller at once, for callers without
 * a key. Each takes 1.2 ms in both processes.
 */
export const STRANGERS_ASKED_FOR_MAX = 8;
/**
 * Requests without a large body that a gateway has with the controller at once. The controller takes up to 7 ms for one, and keeps everybody
 * else waiting meanwhile. A request counts until it is answered, for at most a second: a body may come slowly. A sender
 * may have a third of those that stay free for others.
 */
export const FORWARDED_AT_ONCE_MAX = 32;
export const FORWARDED_HOLD_MS = 1_000;
/**
 * The same of requests with a body of more than SMALL_BODY_BYTES, or in chunks, beside the others: four of one sender.
 * Each takes its place until the body has arrived, and
 * then for as long as it waits to be read: short requests would wait for those of a few keys for seconds.
 */
export const FORWARDED_LARGE_AT_ONCE_MAX = 12;
/** How long a request waits for its turn, and then for a controller that restarts. */
export const FORWARDED_WAIT_MS = 5_000;
/** Requests of one key, or of one address without a key, that wait for their turn at the controller. */
export const FORWARDED_WAITING_OF_A_SENDER_MAX = 500;
/** Lists of APIs, applications or jobs that wait for their turn in the controller, of one sender. */
export const READS_WAITING_OF_A_SENDER_MAX = 500;
/**
 * What arrives of a body while its request waits for its turn at the controller, at most: what Node keeps of a request
 * that nobody reads, and what it reads at once.
 */
export const FORWARDED_WAITING_BODY_BYTES = (64 + 64) * 1024;
/**
 * The head of a request at the controller, in bytes. Gateways accept 16 KiB (Node's own limit) and add the permissions
 * of a token. A claim of 12 KiB becomes up to 40 KiB.
 */
export const CONTROLLER_HEAD_BYTES_MAX = 128 * 1024;
