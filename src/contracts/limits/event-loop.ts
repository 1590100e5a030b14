/** How long one step may block the event loop, and what is parsed in a thread beside it. */

/** Long work yields the event loop after this time: a tenth of what a request may wait. */
export const SLICE_MS = 10;
/**
 * A longer submission is parsed in a thread beside the event loop. 64 KiB take up to 10 ms, and starting a thread takes
 * 100 ms. Nearly all submissions that name files are shorter.
 */
export const READ_HERE_BYTES_MAX = 64 * 1024;
/**
 * Of these, one of up to so many bytes is parsed in a thread of its own, as it takes 100 ms at most: a long one of
 * another sender does not keep it waiting.
 */
export const READ_SHORT_BYTES_MAX = 512 * 1024;
/** A longer submission is read within this time: 10 MiB of the smallest items take 2 s ... */
export const READ_ASIDE_LIMIT_MS = 60_000;
/** ... and this much memory of the thread: 10 MiB are 3.5 million empty objects at 56 bytes. */
export const READ_ASIDE_HEAP_MIB = 384;
/**
 * Bytes that wait for the thread: as many as all bodies that may be held (CONTROL_BODIES_BYTES_MAX). They are counted
 * separately, because a body whose connection has ended is no longer held but may still wait. A sender may have as many
 * as stay free for others.
 */
export const ASIDE_WAITING_BYTES_MAX = 128 * 1024 * 1024;
/** Pieces of a sender that wait for the thread. The bytes of a sender are 1,000 of the shortest. */
export const ASIDE_WAITING_OF_A_SENDER_MAX = 500;
/** A configuration of more bytes is parsed in the thread: the parser reads 2 MB a second, and reads twice. */
export const CONFIG_READ_HERE_BYTES_MAX = 8 * 1024;
/**
 * Bytes of submissions that are hashed in one turn of the event loop, for their `Idempotency-Key`: 1 ms, or 4 ms on
 * processors without SHA instructions. All submissions that may be held are 128 MiB, and may end in one turn.
 */
export const HASHED_EACH_TURN_BYTES = 1024 * 1024;
