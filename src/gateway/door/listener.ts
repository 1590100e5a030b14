/** One listening socket, plain or TLS: its limits on connections, and how it closes them. */
import { createServer, type RequestListener, type Server } from "node:http";
import { type Socket, Server as TcpServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { reportFault } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import type { Service } from "../../base/service.ts";
import { boundHeaders } from "../connections/arriving-headers.ts";
import { Certificate } from "../connections/certificate.ts";
import { endIfRestIsDropped } from "../connections/ignored-upgrades.ts";
import { connectionsMax } from "../connections/open-files.ts";
import { parseNoMore } from "../connections/parse-no-more.ts";
import { requestIdOf } from "../connections/request-ids.ts";
import type { TlsFiles } from "../connections/tls-context.ts";
import { acceptingTurns } from "../connections/turns/accepting-turns.ts";
import { handshakeTurns } from "../connections/turns/handshake-turns.ts";
import { readingTurns } from "../connections/turns/reading-turns.ts";
import { AskedAtOnce, followedResponse } from "./asked-at-once.ts";
import { serveTls } from "./handshakes.ts";
import { endLateInTurns, endTooManyHeaders } from "./late-connections.ts";
import { OpenConnections } from "./open-connections.ts";

/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** Time for a client's headers, and for a whole request. Clients that send a byte now and then are cut off. */
const HEADERS_MS = 20_000;
const REQUEST_MS = 300_000;
/** They get up to this much more. */
const CONNECTIONS_POLL_MS = 5_000;
const IDLE_GRACE_MS = 500;
const LAST_ANSWERS_MS = 1_000;

/** "parent": the parent passes connections to `accept`. */
export type ListenOn = { fd: number } | { host: string; port: number } | "parent";

export class Listener implements Service {
  private readonly listenOn: ListenOn;
  private readonly server: Server;
  private readonly certificate: Certificate | undefined;
  private isDraining = false;
  /** Connections that came through `accept`. */
  private readonly dealt = new Set<Socket>();
  private readonly askedAtOnce = new AskedAtOnce();

  constructor(
    listenOn: ListenOn,
    tls: TlsFiles | undefined,
    take: RequestListener,
    mostConnections = connectionsMax(tls !== undefined),
    turns = readingTurns,
    handshakes = handshakeTurns,
  ) {
    this.listenOn = listenOn;
    this.server = createServer({
      IncomingMessage: turns.Request,
      ServerResponse: followedResponse(this.askedAtOnce),
      // Node's refusal has no body. `headFault` refuses such requests.
      requireHostHeader: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: CONNECTIONS_POLL_MS,
    });
    const listener: RequestListener = (request, response) => {
      // HTTP/1.0 has no 100 Continue (RFC 9110, section 10.1.1): its clients send the body, and take 100 for the answer.
      if (request.httpVersion === "1.0") delete request.headers.expect;
      if (!this.askedAtOnce.take(request, response)) return;
      if (this.isDraining) response.setHeader("connection", "close");
      endIfRestIsDropped(request, response);
      take(request, response);
    };
    const refuseExpectation: RequestListener = (request, response) => {
      if (!this.askedAtOnce.take(request, response)) return;
      response.writeHead(417, { connection: "close", "x-request-id": requestIdOf(request) }).end();
      parseNoMore(request.socket);
    };
    this.server.on("request", listener).on("checkContinue", listener);
    this.server.on("checkExpectation", refuseExpectation);
    endLateInTurns(this.server);
    const open = new OpenConnections(mostConnections, (socket) => this.askedAtOnce.use(socket));
    const bound = { count: () => turns.count(), refuse: endTooManyHeaders };
    // With TLS these come after the handshake: requests name the socket that comes then.
    this.server.on("connection", (socket: Socket) => {
      open.add(socket);
      turns.add(socket);
      boundHeaders(socket, bound);
    });
    if (tls !== undefined) {
      const certificate = new Certificate(tls);
      this.certificate = certificate;
      const context = () => certificate.context;
      serveTls(this.server, { context, turns: handshakes, count: (parts) => turns.count(parts) });
    }
    this.server.prependListener("connection", () => acceptingTurns.accepted());
  }

  async start(): Promise<void> {
    const { listenOn } = this;
    // Without a listening socket, this event starts Node's timeouts for slow request heads.
    if (listenOn === "parent") {
      acceptingTurns.areDealt();
      this.server.emit("listening");
    } else
      await new Promise<void>((resolve, reject) => {
        this.server.once("error", reject);
        this.server.listen(listenOn, resolve);
      });
    this.server.on("error", (error) => reportFault(error, "a listening socket"));
    this.certificate?.follow();
  }

  async stop(): Promise<void> {
    await this.drain(() => true);
  }

  /** Takes a connection that another process has accepted. */
  accept(socket: Socket): void {
    this.dealt.add(socket);
    socket.once("close", () => this.dealt.delete(socket));
    // As in Node's server. A client that ends its side has left (docs/contract/predictor.md#clients-that-leave): only
    // by that does a server notice one that closes its connection.
    socket.allowHalfOpen = true;
    // As there, too: a response in two writes would wait 40 ms for the client's acknowledgement of the first.
    socket.setNoDelay(true);
    this.server.emit("connection", socket);
  }

  /**
   * Accepts no new connections. Keep-alive connections close with their next response. Idle ones are closed only a
   * moment later, because a request may already be on its way.
   */
  async drain(isIdle: () => boolean): Promise<void> {
    if (this.isDraining) return;
    this.isDraining = true;
    this.certificate?.stop();
    // Not http's own `close`, which closes idle connections at once.
    const closed =
      this.listenOn === "parent"
        ? this.allDealtAreGone()
        : new Promise<void>((resolve) => TcpServer.prototype.close.call(this.server, () => resolve()));
    while (!isIdle()) await delay(10);
    await Promise.race([closed, delay(IDLE_GRACE_MS)]);
    // A process that got no CPU runs its timers before it reads the requests that have come meanwhile.
    await nextTurn();
    while (!isIdle()) await delay(10);
    this.server.closeIdleConnections();
    await Promise.race([closed, delay(LAST_ANSWERS_MS)]);
    this.server.closeAllConnections();
  }

  private async allDealtAreGone(): Promise<void> {
    while (this.dealt.size > 0) await delay(10);
  }
}
