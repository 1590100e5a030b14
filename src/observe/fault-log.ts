/**
 * A line for each answer of 5xx that is Quern's own, with its cause and the request's id. Of a flood of one code the first
 * lines are written and the rest are counted, so that an overload does not fill the disk that it is logged to.
 */
import type { ErrorCode, ServiceError } from "../contracts/errors.ts";
import { LOGGED_PATH_LENGTH_MAX } from "../contracts/limits.ts";
import { hideInText } from "../contracts/secrets.ts";
import { cutText } from "./cut-text.ts";
import { LineFlood } from "./line-flood.ts";

/** The predictor's own: its API's log has the traceback. */
const OF_USER_CODE: ReadonlySet<ErrorCode> = new Set(["prediction_failed", "prediction_not_serializable"]);

export interface FaultLine {
  level: "warn" | "error";
  code: ErrorCode;
  request_id: string;
  /** Of a fault that no request is about: which unit of work it ended. */
  unit?: string;
  method?: string | undefined;
  /** Without its query, which may hold secrets. */
  path?: string | undefined;
  /** How many more of this code there were that have no line of their own; `request_id` is the last one's. */
  more?: number;
  err?: unknown;
  msg: string;
}

export class FaultLog {
  private readonly lines: LineFlood<FaultLine>;

  constructor(write: (line: FaultLine) => void) {
    this.lines = new LineFlood((line, more) => write(more === 0 ? line : { ...line, more }));
  }

  /** An answer with this error leaves. */
  record(error: ServiceError, request: { requestId: string; method?: string; url?: string }): void {
    if (error.status < 500 || OF_USER_CODE.has(error.code)) return;
    this.lines.record(error.code, {
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

  /** A fault that ended one unit of work, or was in the way of none. */
  recordContained(error: Error, unit: string): void {
    this.recordFault(error, `${unit}: something went wrong inside Quern; everything else goes on`, unit);
  }

  /** A fault that was within no boundary: whatever it belonged to may stand still. */
  recordUncontained(error: Error): void {
    this.recordFault(error, "an error reached no boundary; please report it");
  }

  private recordFault(err: Error, msg: string, unit?: string): void {
    const code = "internal_error";
    const of = unit === undefined ? {} : { unit };
    this.lines.record(code, { level: "error", code, request_id: "-", ...of, err, msg });
  }
}
