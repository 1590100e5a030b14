/** The files of a project, and the archive in which they arrive. */

/** The largest project, in bytes. */
export const PROJECT_BYTES_LIMIT = 512 * 1024 * 1024;
/** A project's files and directories. Each takes an inode and a sync, so that 100,000 take a minute on a usual disk. */
export const PROJECT_ENTRIES_MAX = 100_000;
/**
 * Bytes of a path in a project, and nested directories. Linux allows 4,096 bytes for a path, which include the data
 * directory's.
 */
export const PROJECT_PATH_BYTES_MAX = 1024;
export const PROJECT_DEPTH_MAX = 64;
/** Bytes of a project's archive besides its files: headers and padding, at most 2.5 KiB per entry. */
export const PROJECT_HEADERS_BYTES_MAX = 256 * 1024 * 1024;
/** A longer file of requirements is refused: a thousand packages with ten hashes each. */
export const REQUIREMENTS_BYTES_MAX = 1024 * 1024;
/** Projects whose lists of files are kept, and their files together: some 200 bytes each, 20 MB. */
export const LISTED_PROJECTS_KEPT_MAX = 200;
export const LISTED_FILES_KEPT_MAX = 100_000;
/** The comparison of two versions: files that are named, and the characters of all their changed lines together. */
export const DIFF_FILES_MAX = 100;
export const DIFF_TEXT_MAX = 128 * 1024;
/** Lines of longer files are not compared. */
export const DIFF_FILE_BYTES_MAX = 256 * 1024;
export const DIFF_FILE_LINES_MAX = 5_000;
/** Lines that are removed and added between two unchanged ones; beyond, all of them count. The worst takes 60 ms. */
export const DIFF_STEPS_MAX = 300;
