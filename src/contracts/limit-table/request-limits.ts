/** The limits of every request, and of those to the control plane. */
import * as authorization from "../limits/authorization.ts";
import * as database from "../limits/database.ts";
import * as predictions from "../limits/predictions.ts";
import * as requests from "../limits/requests.ts";
import * as responses from "../limits/responses.ts";
import * as submissions from "../limits/submissions.ts";
import { bytes, closed, invalid, type LimitRow, unavailable } from "./limit-row.ts";

export const REQUESTS: readonly LimitRow[] = [
  { what: "request line and headers together", most: "16 KiB", error: undefined, status: 431 },
  {
    what: "headers of a request; the connection is closed",
    most: String(requests.HEADERS_OF_A_REQUEST_MAX),
    error: "too_many_headers",
    status: 431,
  },
  invalid("parameters in a request's query; the connection is closed", String(requests.QUERY_PARAMETERS_MAX)),
  {
    what: "headers of a head that has not ended, and trailers of a body, counted in steps of 31; the connection is closed",
    most: String(requests.HEADERS_OF_A_REQUEST_MAX),
    error: undefined,
    status: 431,
  },
  closed("pipelined requests of a connection", String(requests.REQUESTS_OF_A_CONNECTION_MAX)),
  {
    what: `open connections of each listener of a gateway; a new one ends one of the key or address with most, if that has more than 1/${requests.CONNECTIONS_SHARE} of all, else one that is idle`,
    most: `${requests.CONNECTIONS_MAX}, with TLS ${requests.TLS_CONNECTIONS_MAX}, and a third of the files that the gateway may open`,
    error: undefined,
    status: undefined,
  },
  {
    what: `TLS handshakes in progress on each listener of a gateway; a new one ends the oldest of the address with most, if that has more than 1/${requests.CONNECTIONS_SHARE} of all, else the oldest`,
    most: String(requests.HANDSHAKES_MAX),
    error: undefined,
    status: undefined,
  },
  closed("what a TLS client sends until its handshake is over", bytes(requests.HANDSHAKE_BYTES_MAX)),
  {
    what: "body of a prediction",
    most: `${bytes(predictions.PREDICTION_BYTES_LIMIT_DEFAULT)}, or \`--max-body\``,
    error: "body_too_large",
    status: 413,
  },
  closed(
    "bytes of answers that clients of a gateway do not read; those of the key or address with most go for new ones",
    bytes(responses.UNREAD_ANSWERS_BYTES_MAX),
  ),
  {
    what: "time in which a client takes nothing of an answer",
    most: `${responses.UNTAKEN_MS / 1000} to ${(responses.UNTAKEN_MS + responses.UNTAKEN_POLL_MS) / 1000} s`,
    error: undefined,
    status: undefined,
  },
  {
    what: `time in which a fortieth of a body of more than ${requests.SMALL_BODY_BYTES} bytes must arrive`,
    most: `${requests.BODY_PACE_MS / 1000} s`,
    error: "body_too_slow",
    status: 408,
  },
  {
    what: "the same for a smaller body of a prediction that has begun",
    most: `${requests.BODY_PACE_MS / 1000} to ${(2 * requests.BODY_PACE_MS) / 1000} s`,
    error: "body_too_slow",
    status: 408,
  },
  invalid("`limit` of a list", String(responses.LIST_LIMIT_MAX)),
  invalid("steps of a series", String(database.SERIES_POINTS_MAX)),
  invalid("characters of `search` in a list", String(responses.SEARCH_LENGTH_MAX)),
  invalid("jobs in a selection", String(responses.SELECTED_JOBS_MAX)),
  invalid("messages in a selection", String(responses.SELECTED_MESSAGES_MAX)),
  invalid("ids that a selection names", String(responses.SELECTION_NAMED_IDS_MAX)),
  invalid(
    "`Idempotency-Key`",
    `${submissions.IDEMPOTENCY_KEY_LENGTH_MAX} printable characters without spaces`,
  ),
  invalid("a key's `name`", `${authorization.KEY_NAME_LENGTH_MAX} characters`),
  {
    what: "times a minute that a key signs in to the dashboard, or makes a code for it",
    most: String(authorization.SIGN_INS_OF_A_KEY_MAX),
    error: "rate_limited",
    status: 429,
  },
  {
    what: "sessions of a key",
    most: `${authorization.SESSIONS_OF_A_KEY_MAX}, and ${authorization.SESSIONS_MAX} of all`,
    error: undefined,
    status: undefined,
    effect: "the oldest one ends",
  },
  {
    what: `lists of failures, logs and dry runs that a key reads at once, and lists of jobs or APIs of more than ${responses.LIST_AT_ONCE_CHARACTERS} characters`,
    most: String(responses.LISTS_OF_A_KEY_MAX),
    error: "rate_limited",
    status: 429,
  },
  {
    what: "requests of a key, or of an address without one, for jobs with a long `config` that wait until its secrets are hidden",
    most: String(responses.CONFIGS_OF_A_SENDER_MAX),
    error: "rate_limited",
    status: 429,
  },
  unavailable(
    "requests of a key, or of an address without one, that wait for the controller; those with large bodies apart",
    String(requests.FORWARDED_WAITING_OF_A_SENDER_MAX),
    "server_unavailable",
  ),
  unavailable(
    "tokens that a gateway verifies at once; an address may have twice as many as stay free",
    String(authorization.TOKENS_WAITING_MAX),
    "server_unavailable",
  ),
  {
    what: "body of a redrive",
    most: `${bytes(submissions.REDRIVE_BYTES_LIMIT - 1)}`,
    error: "body_too_large",
    status: 413,
  },
];
