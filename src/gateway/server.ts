/**
 * The data-plane process. It owns no state: routes come from the controller or its snapshot file, the listening socket
 * from the parent. With `controller.ts` the only place that wires rooms together.
 */
import { randomBytes } from "node:crypto";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { Server as TcpServer } from "node:net";
import { type HostRules, isAllowedOrigin, isOurHost } from "../access/host-check.ts";
import { delay } from "../base/clock.ts";
import { isSameProcess, signalGroup } from "../base/process-identity.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { ReplicaRoute } from "../contracts/routes.ts";
import { forward } from "./forward.ts";
import { sendError } from "./prediction.ts";
import { Predictions } from "./predictions.ts";
import { RouteTable } from "./route-table.ts";

const EXPIRE_EVERY_MS = 25;
const REPORT_EVERY_MS = 1_000;
const IDLE_GRACE_MS = 500;
const LAST_ANSWERS_MS = 1_000;
/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 75_000;
const SANE_REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

export interface GatewayOptions {
  /** The parent's listening socket, or an address to listen on. */
  listen: { fd: number } | { host: string; port: number };
  controllerSocket: string;
  /** The controller's socket for gateways only. */
  internalSocket: string;
  routesFile: string;
  rules: HostRules;
  publicUrl: string | undefined;
  maxBodyBytes: number;
}

export class Gateway implements Service {
  private readonly options: GatewayOptions;
  private readonly routes: RouteTable;
  private readonly predictions: Predictions;
  private readonly server: Server;
  private readonly idPrefix = randomBytes(6).toString("hex");
  private requests = 0;
  private expiry: NodeJS.Timeout | undefined;
  private reporting: NodeJS.Timeout | undefined;
  private isDraining = false;

  constructor(options: GatewayOptions) {
    this.options = options;
    const { routesFile: file, internalSocket } = options;
    this.routes = new RouteTable({
      file,
      internalSocket,
      pool: {
        kill: (replica) => this.tell(`/workers/${replica.worker_id}/kill`, () => killHere(replica)),
        replace: (replica) => this.tell(`/workers/${replica.worker_id}/replace`, () => killHere(replica)),
        wake: (api) => this.tell(`/apis/${api}/wake`, () => {}),
      },
    });
    const { maxBodyBytes } = options;
    this.predictions = new Predictions({ maxBodyBytes, findKey: (sha256) => this.routes.key(sha256) });
    this.server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      this.take(request, response),
    );
    this.server.on("checkContinue", (request, response) => this.take(request, response));
  }

  async start(): Promise<void> {
    await this.routes.start();
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(this.options.listen, resolve);
    });
    this.expiry = setInterval(() => this.routes.expire(performance.now()), EXPIRE_EVERY_MS);
    this.reporting = setInterval(() => this.report(), REPORT_EVERY_MS);
  }

  /**
   * No new connections; requests under way are answered, keep-alive connections are told to go. Those that are idle are
   * closed a moment later only: a request may be on its way on them.
   */
  async stop(): Promise<void> {
    if (this.isDraining) return;
    this.isDraining = true;
    // Not http's own `close`, which closes idle connections at once.
    const closed = new Promise<void>((resolve) =>
      TcpServer.prototype.close.call(this.server, () => resolve()),
    );
    while (this.routes.underWay > 0) await delay(10);
    await Promise.race([closed, delay(IDLE_GRACE_MS)]);
    while (this.routes.underWay > 0) await delay(10);
    this.server.closeIdleConnections();
    await Promise.race([closed, delay(LAST_ANSWERS_MS)]);
    this.server.closeAllConnections();
    clearInterval(this.expiry);
    clearInterval(this.reporting);
    await this.routes.stop();
  }

  private take(request: IncomingMessage, response: ServerResponse): void {
    const requestId = this.requestId(request);
    const { rules } = this.options;
    if (!isOurHost(request.headers.host, rules))
      return sendError(response, misdirected(request.headers.host), requestId);
    if (this.isDraining) response.setHeader("connection", "close");
    const url = request.url!;
    const name = url.slice(1, nameEnd(url));
    const pool = this.routes.pool(name);
    if (pool !== undefined && isWhole(url, name)) {
      if (request.headers.expect !== undefined) response.writeContinue();
      return this.predictions.take(pool, request, response, requestId);
    }
    if (name === "-") this.takeControl(request, response, requestId, url);
    else if (name === "" || pool !== undefined) sendError(response, unknownAddress(url), requestId);
    // Batch APIs, and what we have not heard of: the controller may have deployed it a moment ago.
    else this.forward(request, response, requestId);
  }

  private takeControl(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    url: string,
  ): void {
    const isProbe = url === "/-/livez" || url === "/-/readyz";
    if (isProbe && request.method !== "GET" && request.method !== "HEAD") {
      const message = `${request.method} is not allowed here; allowed: GET`;
      const error = new ServiceError("method_not_allowed", message, { allow: "GET" });
      return sendError(response, error, requestId);
    }
    if (url === "/-/livez") return sendText(response, 200, "ok\n", requestId);
    if (url === "/-/readyz")
      return this.routes.isReady
        ? sendText(response, 200, "ok\n", requestId)
        : sendText(response, 503, "starting\n", requestId);
    this.forward(request, response, requestId);
  }

  private forward(request: IncomingMessage, response: ServerResponse, requestId: string): void {
    const { origin, host } = request.headers;
    const isMutation = request.method !== "GET" && request.method !== "HEAD" && request.method !== "OPTIONS";
    if (isMutation && !isAllowedOrigin(origin, host, this.options.rules)) {
      return sendError(
        response,
        new ServiceError("origin_not_allowed", `requests from the web page at ${origin} are not taken`),
        requestId,
      );
    }
    if (request.headers.expect !== undefined) response.writeContinue();
    const baseUrl = this.options.publicUrl ?? `http://${host ?? "localhost"}`;
    void forward(request, response, { controllerSocket: this.options.controllerSocket, requestId, baseUrl });
  }

  private requestId(request: IncomingMessage): string {
    const given = request.headers["x-request-id"];
    if (typeof given === "string" && SANE_REQUEST_ID.test(given)) return given;
    return `${this.idPrefix}-${(this.requests++).toString(36)}`;
  }

  /** Asks the controller, which accounts for it; while there is none, what can be done is done here (house, section 2). */
  private tell(path: string, otherwise: () => void, body = ""): void {
    const ask = httpRequest({ socketPath: this.options.internalSocket, method: "POST", path });
    ask.on("error", otherwise);
    ask.on("response", (answer) => answer.resume());
    ask.end(body);
  }

  /** Lost where there is no controller: the next one tells the same. */
  private report(): void {
    this.tell("/reports", () => {}, JSON.stringify(this.routes.report()));
  }
}

function killHere(replica: ReplicaRoute): void {
  if (isSameProcess(replica.pid, replica.process_start)) signalGroup(replica.pid, "SIGKILL");
}

/** Where the first segment of a path ends. */
function nameEnd(url: string): number {
  for (let at = 1; at < url.length; at++) {
    const byte = url.charCodeAt(at);
    if (byte === 0x2f || byte === 0x3f) return at;
  }
  return url.length;
}

/** A prediction's address is the API's name alone, with or without a query and a last slash. */
function isWhole(url: string, name: string): boolean {
  const rest = url.slice(1 + name.length);
  return rest === "" || rest === "/" || rest.startsWith("?") || rest.startsWith("/?");
}

function misdirected(host: string | undefined): ServiceError {
  return new ServiceError(
    "misdirected_request",
    `the Host header ${JSON.stringify(host ?? "")} is not this server's; use localhost, or start it with --public-url`,
  );
}

function unknownAddress(url: string): ServiceError {
  return new ServiceError(
    "route_not_found",
    `${url} is not an address of this server; \`quern get\` shows what is deployed`,
  );
}

function sendText(response: ServerResponse, status: number, text: string, requestId: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-request-id": requestId });
  response.end(text);
}
