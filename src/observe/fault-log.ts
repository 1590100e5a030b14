/**
 * Logs a line for each 5xx response that is Quern's own, with its cause and the request's id. In a flood of one code
 * the first lines are written and the rest are counted. So an overload does not fill the disk with its own log.
 */
import type { ErrorCode, ServiceError } from "../contracts/errors.ts";
import { LOGGED_PATH_LENGTH_MAX } from "../contracts/limits/logs.ts";
import { hideInText } from "../contracts/secrets.ts";
import { cutText } from "./cut-text.ts";
import { LineFlood } from "./line-flood.ts";

/** Faults of the predictor, whose API's log has the traceback, and of callers. */
const OF_OTHERS: ReadonlySet<ErrorCode> = new Set([
  "prediction_failed",
  "prediction_not_serializable",
  "transfer_encoding_not_supported",
  "http_version_not_supported",
]);

export interface FaultLine {
  event: "request_failed" | "internal_error";
  level: "warn" | "error";
  code: ErrorCode;
  request_id: string;
  /** For a fault without a request: the unit of work that it ended. */
  unit?: string;
  method?: string | undefined;
  /** Without the query, which may contain secrets. */
  path?: string | undefined;
  /** How many more faults of this code there were that got no line. `request_id` is then the last one's. */
  more?: number;
  err?: unknown;
  msg: string;
}

export class FaultLog {
  private readonly lines: LineFlood<FaultLine>;

  constructor(write: (line: FaultLine) => void) {
    this.lines = new LineFlood((line, more) => write(more === 0 ? line : { ...line, more }));
  }

  /** Records a response with this error. */
  record(error: ServiceError, request: { requestId: string; method?: string; url?: string }): void {
    if (error.status < 500 || OF_OTHERS.has(error.code)) return;
    this.lines.record(error.code, {
      event: "request_failed",
      level: error.code === "internal_error" ? "error" : "warn",
      code: error.code,
      request_id: request.requestId,
      method: request.method,
      path:
        request.url === undefined ? undefined : cutText(request.url.split("?")[0]!, LOGGED_PATH_LENGTH_MAX),
      ...(error.details.cause === undefined ? {} : { err: error.details.cause }),
      msg: hideInText(error.message),
    });
  }

  /** Records a fault that ended one unit of work, or none. */
  recordContained(error: Error, unit: string): void {
    this.recordFault(error, `${unit}: something went wrong inside Quern; everything else continues`, unit);
  }

  /** Records a fault that no boundary caught: what it belonged to may stand still. */
  recordUncontained(error: Error): void {
    this.recordFault(error, "unhandled error; please report it");
  }

  private recordFault(err: Error, msg: string, unit?: string): void {
    const code = "internal_error";
    const of = unit === undefined ? {} : { unit };
    this.lines.record(code, {
      event: "internal_error",
      level: "error",
      code,
      request_id: "-",
      ...of,
      err,
      msg,
    });
  }
}
