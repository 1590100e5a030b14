/**
 * Every error that a user can meet: its stable code, HTTP status and title (docs/contract/errors.md).
 * A message says what was wrong, what was given, what is allowed, and the cure.
 */
import { ERROR_TEXT_MAX, ERRORS_SHOWN_MAX, FIELD_TEXT_MAX } from "./limits/responses.ts";
import { hideInText } from "./secrets.ts";

export const ERRORS = {
  malformed_json: [400, "The body is not valid JSON"],
  malformed_payload: [400, "The body does not match its content type"],
  invalid_request: [400, "The request is not valid"],
  invalid_configuration: [400, "The configuration is not valid"],
  invalid_project: [400, "The project cannot be deployed"],
  not_supported_yet: [400, "Not supported yet"],
  path_not_allowed: [400, "The path is outside the allowed roots"],
  no_files_found: [400, "No file matches"],
  bucket_not_found: [400, "No such bucket"],
  job_id_required: [400, "A job id is required"],
  unauthorized: [401, "A key is required"],
  forbidden: [403, "The key lacks the required scope"],
  origin_not_allowed: [403, "The origin is not allowed"],
  api_not_found: [404, "No such API"],
  application_not_found: [404, "No such application"],
  resource_not_found: [404, "No such resource"],
  job_not_found: [404, "No such job"],
  key_not_found: [404, "No such key"],
  queue_not_found: [404, "No such queue"],
  message_not_found: [404, "No such message"],
  selection_not_found: [404, "No such selection"],
  no_output: [404, "The job has no output"],
  route_not_found: [404, "No such address"],
  method_not_allowed: [405, "The method is not allowed"],
  body_too_slow: [408, "The body arrived too slowly"],
  output_conflict: [409, "Something else has written to the output"],
  wrong_state: [409, "The state does not allow this"],
  idempotency_key_reused: [409, "The Idempotency-Key was used with another body"],
  body_too_large: [413, "The body is too large"],
  misdirected_request: [421, "Unknown Host header"],
  rate_limited: [429, "Too many requests for this key"],
  too_many_headers: [431, "The request has too many headers"],
  internal_error: [500, "Internal server error"],
  prediction_failed: [500, "The predictor raised an exception"],
  prediction_not_serializable: [500, "The prediction is not JSON"],
  transfer_encoding_not_supported: [501, "The transfer encoding is not supported"],
  worker_died: [502, "The worker died"],
  store_forbidden: [502, "The store denied access"],
  store_unreachable: [502, "The store does not respond"],
  api_not_ready: [503, "The API is starting"],
  queue_timeout: [503, "No replica was free in time"],
  queue_full: [503, "Too many requests are waiting"],
  database_unavailable: [503, "The database cannot be reached"],
  unhealthy: [503, "Something needs a person"],
  server_unavailable: [503, "The server is starting or stopping"],
  standby: [503, "The server is a standby"],
  prediction_timeout: [504, "The prediction took too long"],
  http_version_not_supported: [505, "The HTTP version is not supported"],
  disk_full: [507, "The server's disk is full"],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof ERRORS;

export interface FieldError {
  /** JSON Pointer into the request body, or file:line:column in a configuration. */
  pointer: string;
  detail: string;
  /** A page of the documentation with more information. */
  guide?: string;
}

export interface ErrorDetails {
  fields?: readonly FieldError[];
  /** The number of all errors, if `fields` has only the first ones. */
  fieldsTotal?: number;
  /** Seconds until a retry makes sense: the `Retry-After` header. */
  retryAfterS?: number;
  /** The methods for the `Allow` header of a 405. */
  allow?: string;
  cause?: unknown;
}

/** The only error class that is meant to reach a user. Anything else that is thrown is a bug in Quern (500). */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.name = "ServiceError";
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return ERRORS[this.code][0];
  }
}

/** How a stream ends when its key was revoked or has expired. */
export function revoked(): ServiceError {
  return new ServiceError("unauthorized", "the key of this stream was revoked, or has expired");
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  message: string;
  request_id: string;
  errors?: readonly FieldError[];
  errors_total?: number;
  /** A page of the documentation about one of the errors. */
  guide?: string;
}

/** The body of every error response, `application/problem+json` (RFC 9457). */
export function toProblem(error: ServiceError, requestId: string): Problem {
  const [status, title] = ERRORS[error.code];
  const message = hideInText(shortened(error.message, ERROR_TEXT_MAX));
  const problem: Problem = {
    type: `urn:quern:error:${error.code}`,
    title,
    status,
    detail: message,
    code: error.code,
    message,
    request_id: requestId,
  };
  const { fields, fieldsTotal } = error.details;
  if (fields === undefined || fields.length === 0) return problem;
  const errors = fields.slice(0, ERRORS_SHOWN_MAX).map(({ pointer, detail }) => ({
    pointer: hideInText(shortened(pointer, FIELD_TEXT_MAX)),
    detail: hideInText(shortened(detail, FIELD_TEXT_MAX)),
  }));
  const guide = fields.find((field) => field.guide !== undefined)?.guide;
  return {
    ...problem,
    errors,
    errors_total: fieldsTotal ?? fields.length,
    ...(guide === undefined ? {} : { guide }),
  };
}

/** Cuts out the middle: the text may quote a long input, and its rule and cure are at the end. */
function shortened(text: string, most: number): string {
  const half = (most - 3) >> 1;
  return text.length <= most ? text : `${text.slice(0, half)}...${text.slice(-half)}`;
}

/** The headers of an error response, in lower case. */
export function problemHeaders(error: ServiceError): Record<string, string> {
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (error.details.retryAfterS !== undefined) headers["retry-after"] = String(error.details.retryAfterS);
  if (error.details.allow !== undefined) headers.allow = error.details.allow;
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  return headers;
}

/** Wraps any other error in `internal_error`. The original stays as the cause, for the log. */
export function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError(
    "internal_error",
    "something went wrong inside Quern; the server's log has the cause under this request_id",
    {
      cause: error,
    },
  );
}
