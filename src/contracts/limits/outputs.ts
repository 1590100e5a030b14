/** The output of a job: rows from workers, on their way to the parts in a store. */

const MIB = 1024 * 1024;

/**
 * How many bytes of rows a worker sends before the controller has written some of them to its disk: what one worker can
 * take of the controller's memory. python/quern_runtime/protocol.py has the same number.
 */
export const OUTPUT_WINDOW_BYTES = 2 * MIB;
/** Rows are written to the disk when so many have come, and before they are committed. */
export const SPOOL_WRITE_BYTES = 256 * 1024;
/** A file of the spool ends after so many bytes, so that its space is free again before the job ends. */
export const SPOOL_FILE_BYTES = 64 * MIB;
/** A part of the output has at least so many bytes, before compression; the last one has the rest. */
export const PART_BYTES = 64 * MIB;
/** How strongly parts are compressed: level 3 takes twice as long, and makes rows at most 2 % smaller ... */
export const ZSTD_LEVEL = 1;
/**
 * ... and their windows are larger. Each reader of a part holds one: 540 readers (LISTS_MAX and STREAMS_MAX) hold
 * 270 MiB. A part that needs more memory to be read was not written by Quern.
 */
export const PART_WINDOW_BYTES = MIB / 2;
/** How often a reader that follows the results of a job looks for more. */
export const RESULTS_POLL_MS = 200;
/**
 * Bytes of results that are read at once. A reader that does not read on holds three: one in the socket, one that waits
 * for it, and one in the stream. 540 readers hold 200 MiB.
 */
export const RESULTS_READ_BYTES = 128 * 1024;
