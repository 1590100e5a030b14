/** The command line's HTTP: one server, one key, problems turned into messages and exit codes. */
import type { Problem } from "../contracts/errors.ts";
import { CliError, EXIT } from "./context.ts";

const EXIT_BY_STATUS: Record<number, number> = {
  401: EXIT.notAllowed,
  403: EXIT.notAllowed,
  404: EXIT.notFound,
  409: EXIT.conflict,
};

export interface RequestOptions {
  method?: string;
  query?: Record<string, string | string[] | undefined>;
  headers?: Record<string, string>;
  body?: Uint8Array | ReadableStream<Uint8Array>;
  signal?: AbortSignal;
}

export class Client {
  readonly baseUrl: string;
  private readonly key: string | undefined;
  private readonly apiPaths = new Map<string, string>();

  constructor(baseUrl: string, key: string | undefined) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.key = key;
  }

  /** The response of a request that succeeded; everything else is a CliError. */
  async request(path: string, options: RequestOptions = {}): Promise<Response> {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      for (const one of Array.isArray(value) ? value : value === undefined ? [] : [value])
        url.searchParams.append(name, one);
    }
    const headers: Record<string, string> = { ...options.headers };
    if (this.key !== undefined) headers.authorization ??= `Bearer ${this.key}`;
    assertSendable(headers);
    let response: Response;
    try {
      response = await fetch(url, {
        method: options.method ?? "GET",
        headers,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(options.body === undefined ? {} : { body: options.body, duplex: "half" }),
      } as RequestInit);
    } catch (error) {
      const cause = (error as { cause?: { code?: string; message?: string } }).cause;
      const why = cause?.code ?? cause?.message ?? (error as Error).message;
      throw new CliError(
        `no server answers at ${this.baseUrl} (${why}); start one with \`quern up\`, or name another: \`quern env list\`, -e, QUERN_HOST`,
        EXIT.unreachable,
      );
    }
    if (!response.ok) throw await toCliError(response);
    return response;
  }

  /**
   * The path of an API. Only an admin may ask for it, and a deleted one has none: it is then taken to be the API's name, as
   * it mostly is.
   */
  async apiPath(name: string): Promise<string> {
    const known = this.apiPaths.get(name);
    if (known !== undefined) return known;
    const path = await this.json<{ path: string }>(`/-/apis/${encodeURIComponent(name)}`).then(
      ({ value }) => value.path,
      (error: unknown) => {
        const isOurs = error instanceof CliError && error.exitCode !== EXIT.unreachable;
        if (!isOurs) throw error;
        return `/${encodeURIComponent(name)}`;
      },
    );
    this.apiPaths.set(name, path);
    return path;
  }

  /** The JSON answer. Its text is given too, where numbers must keep their digits. */
  async json<T>(path: string, options: RequestOptions = {}): Promise<{ value: T; text: string }> {
    const text = await (await this.request(path, options)).text();
    return { value: JSON.parse(text) as T, text };
  }
}

/** Names what cannot be sent, and does not repeat it: it may be a key. */
function assertSendable(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (/^[\t\x20-\x7e]*$/.test(value)) continue;
    const what = name === "authorization" ? "the key (QUERN_API_KEY, or the environment's)" : `the ${name}`;
    throw new CliError(
      `${what} cannot be sent: it may have printable ASCII characters only; copy it again`,
      EXIT.usage,
    );
  }
}

async function toCliError(response: Response): Promise<CliError> {
  const text = await response.text();
  const exitCode = EXIT_BY_STATUS[response.status] ?? EXIT.failed;
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    return new CliError(`${response.status}: ${text}`, exitCode);
  }
  if (problem.errors === undefined) return new CliError(problem.message ?? JSON.stringify(problem), exitCode);
  const lines = problem.errors.map(
    ({ pointer, detail }) => `  ${pointer === "" ? "" : `${pointer}: `}${detail}`,
  );
  const hidden = (problem.errors_total ?? 0) - problem.errors.length;
  const more = hidden > 0 ? [`  and ${hidden} more`] : [];
  return new CliError([`${problem.title.toLowerCase()}:`, ...lines, ...more].join("\n"), exitCode);
}
