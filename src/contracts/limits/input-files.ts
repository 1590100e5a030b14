/** How the files of a job or of an application are read: lines, compressed files, and the memory for finding files by patterns. */

/** A line of input may have white space that does not count. Past this many raw bytes it is refused. */
export const LINE_BYTES_LIMIT = 8 * 1024 * 1024;
/**
 * A compressed file may unpack to this many times its size (deflate reaches at most 1,032; JSON lines rarely 50) ...
 */
export const COMPRESSION_RATIO_MAX = 1100;
/** ... and is checked once it has produced this many bytes. */
export const COMPRESSION_FREE_BYTES = 64 * 1024 * 1024;
/**
 * So many bytes of a compressed file must unpack to at least one. Unpacking nothing takes up to 0.45 s for a megabyte:
 * blocks and frames may be empty, and frames may be there to be skipped. Indexes at the end of files are shorter.
 */
export const COMPRESSED_SILENT_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Each stretch of zeros between members of a `.gz` counts as so many of these bytes, since what follows takes another
 * decompressor: 0.25 ms. So 4,000 of them that unpack to nothing take a second.
 */
export const GZIP_PADDING_COUNTS_BYTES = 4096;
/**
 * Zstandard: how far back a file may refer. All of this window is held in memory. `zstd --long` needs 128 MiB. Every
 * level without `--ultra` needs at most 8 MiB, which any decompressor should support (RFC 8878). At most two larger
 * windows are held at once: 256 MiB.
 */
export const ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024;
export const ZSTD_COMMON_WINDOW_BYTES = 8 * 1024 * 1024;
export const LARGE_WINDOWS_MAX = 2;
/** States of automata that one selection keeps, about a kilobyte each. */
export const GLOB_STATES_KEPT = 2000;
/**
 * Files of an application's data. All their names are in memory, twice: 20 MB if each has the longest key that stores
 * allow.
 */
export const DATA_FILES_MAX = 10_000;
/** ... all together: one process reads them into one table of this machine ... */
export const DATA_BYTES_MAX = 256 * 1024 ** 3;
/** ... and the part of the free disk that they may take, because jobs and the database need it too. */
export const DATA_DISK_SHARE = 0.8;
/** Pages of the listing that finds them, also empty ones: 100 million objects of a bucket. */
export const DATA_PAGES_MAX = 100_000;
