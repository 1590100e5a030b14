/** The command line's HTTP client: one server and one key. It turns problems into messages and exit codes. */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { Problem } from "../../contracts/errors.ts";
import { CliError, EXIT } from "./context.ts";
import { NotProven, ProvenAgent } from "./proven-agent.ts";
import { addressOf } from "./server-address.ts";

/** A list of 500 failures has half of this. An untrusted server may send without end. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
const ERROR_BYTES_MAX = 1024 * 1024;

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

export interface ClientOptions {
  baseUrl: string;
  key: string | undefined;
  /**
   * The data directory whose server this must be, and SHA-256 of its admin token. Undefined if the user named a server.
   */
  own: { dataDir: string; tokenSha256: string } | undefined;
}

export class Client {
  readonly baseUrl: string;
  private readonly options: ClientOptions;
  private readonly agent: Agent;
  private readonly apiPaths = new Map<string, string>();
  /** The path of the last response that was JSON. */
  private lastJson: string | undefined;

  constructor(options: ClientOptions) {
    this.options = options;
    this.baseUrl = options.baseUrl.replace(/\/+$/, "");
    const isTls = this.baseUrl.startsWith("https:");
    if (options.own !== undefined) this.agent = new ProvenAgent(options.own.tokenSha256, isTls);
    else this.agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  }

  /** Returns the response to a successful request, and throws a CliError for any other. Redirects are not followed. */
  async request(path: string, options: RequestOptions = {}): Promise<IncomingMessage> {
    const answer = await this.send(this.address(path, options.query), options).catch((error: Error) => {
      throw this.unreachable(error);
    });
    const { statusCode: status = 0, headers } = answer;
    if (status >= 200 && status < 300) return answer;
    if (status < 400) {
      // An unread body would keep the process alive.
      answer.destroy();
      const message = `${this.baseUrl} redirects to ${headers.location ?? "nowhere"}; redirects are not followed, so name the server's own address`;
      throw new CliError(message, EXIT.failed);
    }
    throw toCliError(
      status,
      (await textOf(answer, ERROR_BYTES_MAX)) ?? "the server sent an error that is too long to show",
    );
  }

  /** The server may have provided the path, so check that it leads to the same server. */
  private address(path: string, query: RequestOptions["query"] = {}): URL {
    const url = addressOf(this.baseUrl, path);
    if (!path.startsWith("/") || url.origin !== new URL(this.baseUrl).origin)
      throw new CliError(`"${path}" is not a path of ${this.baseUrl}`, EXIT.failed);
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : value === undefined ? [] : [value])
        url.searchParams.append(name, one);
    }
    return url;
  }

  private async send(
    url: URL,
    { method = "GET", headers, body, signal }: RequestOptions,
  ): Promise<IncomingMessage> {
    const { key } = this.options;
    const sent: Record<string, string> = { ...headers };
    if (key !== undefined) sent.authorization ??= `Bearer ${key}`;
    assertSendable(sent);
    return new Promise((resolve, reject) => {
      const send = url.protocol === "https:" ? httpsRequest : httpRequest;
      const request = send(url, {
        method,
        agent: this.agent,
        headers: sent,
        ...(signal === undefined ? {} : { signal }),
      });
      request.once("response", resolve).on("error", reject);
      if (body instanceof ReadableStream)
        Readable.fromWeb(body as never)
          .on("error", (error) => request.destroy(error))
          .pipe(request);
      else request.end(body);
    });
  }

  private unreachable(error: NodeJS.ErrnoException): CliError {
    const { own } = this.options;
    if (error instanceof CliError) return error;
    if (error instanceof NotProven)
      return new CliError(
        `the program at ${this.baseUrl} is not the server of ${own?.dataDir} (${error.message}), so nothing was sent to it; start that server with \`quern up\`, or use another one: \`quern env add NAME --host ${this.baseUrl}\`, then -e NAME`,
        EXIT.unreachable,
      );
    return new CliError(
      `no server responds at ${this.baseUrl} (${error.code ?? error.message}); start one with \`quern up\`, or name another: \`quern env list\`, -e, QUERN_HOST`,
      EXIT.unreachable,
    );
  }

  /**
   * The path of an API. Only an admin may request it, and a deleted API has none. Then the API's name is used, which
   * usually is the path.
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

  /** The path of a job: the address of its API, and its id. */
  async jobPath(api: string, jobId: string): Promise<string> {
    return `${await this.apiPath(api)}/${encodeURIComponent(jobId)}`;
  }

  /** Returns a JSON response, and its text for callers that need all digits of its numbers. */
  async json<T>(path: string, options: RequestOptions = {}): Promise<{ value: T; text: string }> {
    // A carriage return is white space in JSON, but would be printed escaped.
    const text = (await this.text(path, options)).replaceAll("\r", "\n");
    const value = objectIn(text);
    if (value === undefined) throw this.foreign(path);
    this.lastJson = path;
    return { value: value as T, text };
  }

  /**
   * Runs a command. Commands trust the form of responses, so a TypeError after one means that another program sent it,
   * or another release.
   */
  async understanding<T>(command: () => Promise<T>): Promise<T> {
    try {
      return await command();
    } catch (error) {
      if (!(error instanceof TypeError) || this.lastJson === undefined) throw error;
      throw this.foreign(this.lastJson, ` (${error.message})`);
    }
  }

  /** The error about a response that no Quern server of this release sends. */
  foreign(path: string, detail = ""): CliError {
    const message = `the response of ${this.baseUrl} to ${path} is not one of a Quern server of this release${detail}; check the address (\`quern env list\`, -e, QUERN_HOST) and \`quern version\``;
    return new CliError(message, EXIT.failed);
  }

  /** Returns the response unchanged. */
  async text(path: string, options: RequestOptions = {}): Promise<string> {
    const text = await textOf(await this.request(path, options), ANSWER_BYTES_MAX);
    if (text !== undefined) return text;
    const most = `${ANSWER_BYTES_MAX / 2 ** 20} MiB, the limit of a command`;
    throw new CliError(
      `the response of ${this.baseUrl} has more than ${most}; fetch it with curl`,
      EXIT.failed,
    );
  }
}

/** Names a header that cannot be sent. It does not print the value, which may be a key. */
function assertSendable(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (/^[\t\x20-\x7e]*$/.test(value)) continue;
    const what = name === "authorization" ? "the key (QUERN_API_KEY, or the environment's)" : `the ${name}`;
    throw new CliError(
      `${what} cannot be sent: only printable ASCII characters are allowed; copy it again`,
      EXIT.usage,
    );
  }
}

/** The whole body, or undefined if it has more than `most` bytes. */
async function textOf(answer: IncomingMessage, most: number): Promise<string | undefined> {
  const decoder = new StringDecoder();
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      // Leaving the loop closes the connection.
      if (bytes > most) return undefined;
      text += decoder.write(chunk);
    }
  } catch (error) {
    throw new CliError(
      `the response was cut off (${(error as Error).message}); try again, or read the server's log`,
      EXIT.failed,
    );
  }
  return text + decoder.end();
}

/** The JSON object or array in a text; undefined if it has none. All responses of a server are objects or arrays. */
export function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function toCliError(status: number, text: string): CliError {
  const exitCode = EXIT_BY_STATUS[status] ?? EXIT.failed;
  const problem = objectIn(text) as Problem | undefined;
  if (problem === undefined) return new CliError(`${status}: ${text}`, exitCode);
  if (!Array.isArray(problem.errors))
    return new CliError(problem.message ?? JSON.stringify(problem), exitCode, problem.code);
  const lines = problem.errors.map(
    ({ pointer, detail }) => `  ${pointer === "" ? "" : `${pointer}: `}${detail}`,
  );
  const hidden = (problem.errors_total ?? 0) - problem.errors.length;
  const more = hidden > 0 ? [`  and ${hidden} more`] : [];
  if (problem.guide !== undefined) more.push(`see the guide ${problem.guide}`);
  return new CliError(
    [`${problem.title.toLowerCase()}:`, ...lines, ...more].join("\n"),
    exitCode,
    problem.code,
  );
}
