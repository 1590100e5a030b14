/** Limits of the conversation with a cluster's API server. */

/** How long a token is used before its file is read again. The kubelet renews it minutes before its end. */
export const CREDENTIALS_KEPT_MS = 60_000;
/** The longest silence before or within a response. The API server itself ends a request after 60 s. */
export const CLUSTER_SILENT_MAX_MS = 30_000;
/** The pause before a label that could not be written is written again: the first, and the longest. */
export const LABEL_PAUSE_FIRST_MS = 200;
export const LABEL_PAUSE_MAX_MS = 5_000;
/** About how often the active server reads the labels: so long a former server's late change may stay. */
export const LABEL_CHECK_MS = 30_000;
/** Objects in one page of a list. A pod takes 5 to 10 KiB, so a page is read in some 20 ms. */
export const CLUSTER_PAGE_OBJECTS = 200;
/** The longest response. etcd refuses objects of more than 1.5 MiB; a page of the largest pods has some 20 MiB. */
export const CLUSTER_RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** The longest line of a watch: an object of the largest size, written as JSON. */
export const WATCH_LINE_BYTES_MAX = 8 * 1024 * 1024;
