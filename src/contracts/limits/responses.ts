/** What a response shows, and how many stay open: errors, lists and streams. */

/** Errors shown in one response (docs/contract/errors.md#errors-shown). */
export const ERRORS_SHOWN_MAX = 20;
/**
 * Characters of an error's text, and of the text about one field. They quote what was given, which may be megabytes.
 */
export const ERROR_TEXT_MAX = 8 * 1024;
export const FIELD_TEXT_MAX = 1024;
/** A caller's text is quoted to this many characters in messages, so that a response is not larger than its request. */
export const QUOTED_LENGTH_MAX = 120;
/** Page sizes of lists (docs/contract/jobs.md#list-of-jobs). */
export const LIST_LIMIT_DEFAULT = 50;
export const LIST_LIMIT_MAX = 500;
/** Characters of a text that lists of jobs and messages are searched for. */
export const SEARCH_LENGTH_MAX = 200;
/** Rows of a list that are read and sent at once. A reason has up to 20 KiB. */
export const LIST_ROWS_AT_ONCE = 50;
/**
 * Lists of failures that one key reads at once. Each holds up to 2 MiB of errors (20 of 97 KiB) and 3 MiB of a segment
 * until its client reads on. All that may be open hold 200 MiB. Messages of dead letter queues (16 of 256 KiB), logs
 * that are not followed, the audit and dry runs count too. A log holds some 200 KB, so that 6,000 held a gigabyte.
 */
export const LISTS_OF_A_KEY_MAX = 10;
export const LISTS_MAX = 40;
/**
 * Streams that one key may have open: events of jobs, and logs and audits that are followed. Each polls the database or
 * the disk five times a second at most, for 0.1 ms. A hundred take a twentieth of a core; all that may be open take a quarter.
 */
export const STREAMS_OF_A_KEY_MAX = 100;
export const STREAMS_MAX = 500;
/** How often the key of an open stream is checked: a revocation must end the stream within 2 s. */
export const STREAM_POLL_MS = 500;
/**
 * Requests of one key (or of an address without one) that wait until the secrets of a long `config` are hidden. One takes
 * up to 20 ms.
 */
export const CONFIGS_OF_A_SENDER_MAX = 200;
/**
 * Configurations of versions of APIs that are kept as they are shown: 256 of the longest (CONFIG_BYTES_MAX), or many
 * short ones. Others are read again, in slices, by each request.
 */
export const SHOWN_VERSIONS_MAX = 10_000;
export const SHOWN_VERSIONS_CHARACTERS_MAX = 64 * 1024 * 1024;
/** A list of APIs that has more characters is streamed, and counts as one of the lists above. */
export const LIST_AT_ONCE_CHARACTERS = 256 * 1024;
/**
 * The value of an aggregate as JSON, and the metrics of a model: user code makes both. Reading and showing 256 KiB takes
 * 10 ms in one step ...
 */
export const RESULT_SHOWN_BYTES_MAX = 256 * 1024;
/** ... and the values of one response together. They are written in one step. */
export const VALUES_SHOWN_BYTES_MAX = 1024 * 1024;
/** A resource's state with the reason why it failed, of which 8,192 characters are kept: up to 12 bytes each in JSON. */
export const RESOURCE_STATE_BYTES_MAX = 128 * 1024;
/** A stream that is silent this long gets a comment or an empty line, before a proxy closes it (60 s is common). */
export const STREAM_HEARTBEAT_MS = 15_000;
/**
 * Bytes of responses that a gateway holds for clients which do not read them. Beyond that, it closes connections of the
 * owner (a key, or an address without one) that holds most, if that is more than this part of it; otherwise the oldest
 * ones. A response has up to 256 KiB, the end of a stream up to 1 MiB.
 */
export const UNREAD_ANSWERS_BYTES_MAX = 128 * 1024 * 1024;
export const UNREAD_ANSWERS_SHARE = 16;
/** How many responses are looked at to find one of which the client takes nothing: 100 us of work. */
export const UNREAD_ANSWERS_LOOKED_AT_MAX = 100;
/** What a response that is forwarded from the controller holds besides the bytes that were written: one read. */
export const UNREAD_FORWARDED_BYTES = 64 * 1024;
/** A client that takes nothing of a response for this long is cut off, up to one period of the check later. */
export const UNTAKEN_MS = 60_000;
export const UNTAKEN_POLL_MS = 15_000;
/** How often the overview is computed for all who follow it: a change is shown within a second. */
export const OVERVIEW_EVERY_MS = 900;
/** How soon it is computed after a request that changed something: a person sees what it did. */
export const OVERVIEW_SOON_MS = 100;
/** Jobs in the overview, and jobs of each kind that need attention. */
export const OVERVIEW_JOBS_MAX = 50;
export const ATTENTION_JOBS_MAX = 20;
/** Dead letter queues that are counted for the overview, each to some thousand messages, every so often. */
export const ATTENTION_QUEUES_MAX = 20;
export const ATTENTION_QUEUES_EVERY_MS = 5_000;
/** Lines of what needs attention: the worst are kept. */
export const ATTENTION_MAX = 200;
/** Characters of such a line. */
export const ATTENTION_TITLE_MAX = 300;
/** Events that wait for a client that does not read: then it gets the whole overview again. */
export const OVERVIEW_BEHIND_MAX = 5;
/**
 * Selections: lists of ids that the controller keeps for ten minutes, some 50 bytes each: 25 MB in all. A key that makes
 * another one than this, or has more ids in all than one selection may have, loses its oldest.
 */
export const SELECTED_JOBS_MAX = 100_000;
export const SELECTED_MESSAGES_MAX = 10_000;
export const SELECTED_IDS_MAX = 500_000;
export const SELECTIONS_OF_A_KEY_MAX = 10;
/** ... and of all. Without a key each address has its own. */
export const SELECTIONS_MAX = 1_000;
export const SELECTION_KEPT_MS = 600_000;
/** Ids that a request itself may name, and its bytes. */
export const SELECTION_NAMED_IDS_MAX = 1_000;
export const SELECTION_BYTES_LIMIT = 64 * 1024;
/** Reasons that an action on a selection tells. */
export const SKIPPED_SHOWN_MAX = 100;
/** Jobs of a selection that are changed at once: each waits for a commit, and may wait for the end of a batch. */
export const CHANGED_AT_ONCE = 8;
/** Bytes of messages that one request searches: a second of work, in slices. A search goes on at its cursor. */
export const MESSAGES_SEARCHED_BYTES = 256 * 1024 * 1024;
