/**
 * A line for each answer of 5xx that is Quern's own, with its cause and the request's id. Of a flood of one code the first
 * lines are written and the rest are counted, so that an overload does not fill the disk that it is logged to.
 */
import type { ErrorCode, ServiceError } from "../contracts/errors.ts";
import { FAULT_LINES_MAX, FAULT_WINDOW_MS } from "../contracts/limits.ts";

/** The predictor's own: its API's log has the traceback. */
const OF_USER_CODE: ReadonlySet<ErrorCode> = new Set(["prediction_failed", "prediction_not_serializable"]);

export interface FaultLine {
  level: "warn" | "error";
  code: ErrorCode;
  request_id: string;
  method?: string | undefined;
  /** Without its query, which may hold secrets. */
  path?: string | undefined;
  /** How many more of this code there were that have no line of their own; `request_id` is the last one's. */
  more?: number;
  err?: unknown;
  msg: string;
}

interface Window {
  lines: number;
  more: number;
  last: FaultLine;
}

export class FaultLog {
  private readonly write: (line: FaultLine) => void;
  private readonly windows = new Map<ErrorCode, Window>();

  constructor(write: (line: FaultLine) => void) {
    this.write = write;
  }

  /** An answer with this error leaves. */
  record(error: ServiceError, request: { requestId: string; method?: string; url?: string }): void {
    if (error.status < 500 || OF_USER_CODE.has(error.code)) return;
    const line: FaultLine = {
      level: error.code === "internal_error" ? "error" : "warn",
      code: error.code,
      request_id: request.requestId,
      method: request.method,
      path: request.url?.split("?")[0],
      ...(error.details.cause === undefined ? {} : { err: error.details.cause }),
      msg: error.message,
    };
    const window = this.windows.get(error.code);
    if (window === undefined) this.open(line);
    else if (window.lines++ < FAULT_LINES_MAX) this.write(line);
    else Object.assign(window, { more: window.more + 1, last: line });
  }

  private open(line: FaultLine): void {
    this.write(line);
    this.windows.set(line.code, { lines: 1, more: 0, last: line });
    setTimeout(() => this.close(line.code), FAULT_WINDOW_MS).unref();
  }

  private close(code: ErrorCode): void {
    const { more, last } = this.windows.get(code)!;
    this.windows.delete(code);
    if (more > 0) this.write({ ...last, more });
  }
}
