/** An answer of the API server that is no success. */

/** How long to wait if the API server asks for patience, but does not say for how long. */
const PATIENCE_MS = 1_000;

export class ApiError extends Error {
  /** HTTP status, or the code of an ERROR event. */
  readonly status: number;
  /** Kubernetes's word for it, such as `Expired` or `Forbidden`; empty if it gave none. */
  readonly reason: string;
  /** How long the API server asks us to wait, in milliseconds; undefined if it does not. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** The resource version is too old, or the next page is gone: list again. */
  get isExpired(): boolean {
    return this.status === 410;
  }
}

/** `body`: a Status object as JSON, or what a proxy in between answered. */
export function apiError(status: number, body: string, retryAfter: string | undefined): ApiError {
  const { reason, message, code } = statusOf(body);
  const seconds = Number(retryAfter);
  const retryAfterMs = Number.isFinite(seconds) && retryAfter !== undefined ? seconds * 1_000 : undefined;
  const isBusy = status === 429 || status === 503;
  return new ApiError(
    code ?? status,
    reason ?? "",
    message ?? `the API server answered ${status}`,
    retryAfterMs ?? (isBusy ? PATIENCE_MS : undefined),
  );
}

interface Status {
  kind?: string;
  reason?: string;
  message?: string;
  code?: number;
}

function statusOf(body: string): Status {
  try {
    const status = JSON.parse(body) as Status | null;
    return status?.kind === "Status" ? status : {};
  } catch {
    return {};
  }
}
