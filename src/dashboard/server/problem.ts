/** What a failed request says: the server's problem document (RFC 9457), or that there is no answer. */

interface Body {
  code?: string;
  message?: string;
  detail?: string;
  request_id?: string;
  errors?: { pointer: string; detail: string }[];
}

export class Problem extends Error {
  readonly code: string;
  /** 0: no response. */
  readonly status: number;
  readonly requestId: string | undefined;
  readonly details: readonly string[];

  constructor(status: number, body: Body) {
    super(body.message ?? body.detail ?? `the server answered with status ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? "unknown";
    this.requestId = body.request_id;
    this.details = (body.errors ?? []).map(({ pointer, detail }) => `${pointer}: ${detail}`);
  }

  static async of(response: Response): Promise<Problem> {
    const text = await response.text().catch(() => "");
    try {
      return new Problem(response.status, JSON.parse(text) as Body);
    } catch {
      // A proxy between here and the server made the response.
      return new Problem(response.status, {
        message: `the address answered with status ${response.status}, and not as Quern does`,
      });
    }
  }

  static unreachable(): Problem {
    return new Problem(0, {
      code: "unreachable",
      message: "the server does not answer; this page tries again",
    });
  }
}

/** Any thrown value as an error with a message. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
