/** One listening socket: plain or TLS, its limits on connections, and how it lets go of them. */
import { readFileSync, statSync } from "node:fs";
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type Socket, Server as TcpServer } from "node:net";
import { reportFault } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import type { Service } from "../base/service.ts";
import { say } from "../observe/words.ts";
import { AskedAtOnce } from "./asked-at-once.ts";
import { boundHandshakes } from "./handshakes.ts";

/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** A client has so long for its TLS handshake, for its headers, and for all of a request: whoever sends a byte now and then is cut off. */
const HEADERS_MS = 20_000;
const REQUEST_MS = 300_000;
const CONNECTIONS_LOOK_MS = 2_000;
const IDLE_GRACE_MS = 500;
const LAST_ANSWERS_MS = 1_000;
const CERTIFICATE_LOOK_MS = 1_000;

/** "parent": connections come by `accept`. */
export type ListenOn = { fd: number } | { host: string; port: number } | "parent";

export interface TlsFiles {
  cert: string;
  key: string;
}

export class Listener implements Service {
  private readonly listenOn: ListenOn;
  private readonly tls: TlsFiles | undefined;
  private readonly server: Server | TlsServer;
  private certificateTimer: NodeJS.Timeout | undefined;
  private isDraining = false;
  /** Connections that came by `accept`. */
  private readonly dealt = new Set<Socket>();
  private readonly askedAtOnce = new AskedAtOnce();

  constructor(listenOn: ListenOn, tls: TlsFiles | undefined, take: RequestListener) {
    this.listenOn = listenOn;
    this.tls = tls;
    const limits = {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: CONNECTIONS_LOOK_MS,
    };
    this.server = tls === undefined ? createServer(limits) : tlsServer(limits, tls);
    const listener: RequestListener = (request, response) => {
      if (!this.askedAtOnce.take(request, response)) return;
      if (this.isDraining) response.setHeader("connection", "close");
      take(request, response);
    };
    const refuseExpectation: RequestListener = (request, response) => {
      if (this.askedAtOnce.take(request, response)) response.writeHead(417, { connection: "close" }).end();
    };
    this.server.on("request", listener).on("checkContinue", listener);
    this.server.on("checkExpectation", refuseExpectation);
  }

  async start(): Promise<void> {
    const { listenOn } = this;
    // Without a socket of its own, this is what starts http's watch over slow heads.
    if (listenOn === "parent") this.server.emit("listening");
    else
      await new Promise<void>((resolve, reject) => {
        this.server.once("error", reject);
        this.server.listen(listenOn, resolve);
      });
    this.server.on("error", (error) => reportFault(error, "a listening socket"));
    if (this.tls !== undefined) this.followCertificate(this.tls);
  }

  async stop(): Promise<void> {
    await this.drain(() => true);
  }

  /** A connection that somebody else has accepted. */
  accept(socket: Socket): void {
    this.dealt.add(socket);
    socket.once("close", () => this.dealt.delete(socket));
    // As http's own: a client may end its side before it has the answer.
    socket.allowHalfOpen = true;
    this.server.emit("connection", socket);
  }

  /**
   * No new connections; keep-alive connections are told to go with their next answer. Those that are idle are closed a
   * moment later only: a request may be on its way on them.
   */
  async drain(isIdle: () => boolean): Promise<void> {
    if (this.isDraining) return;
    this.isDraining = true;
    clearInterval(this.certificateTimer);
    // Not http's own `close`, which closes idle connections at once.
    const closed =
      this.listenOn === "parent"
        ? this.allDealtAreGone()
        : new Promise<void>((resolve) => TcpServer.prototype.close.call(this.server, () => resolve()));
    while (!isIdle()) await delay(10);
    await Promise.race([closed, delay(IDLE_GRACE_MS)]);
    while (!isIdle()) await delay(10);
    this.server.closeIdleConnections();
    await Promise.race([closed, delay(LAST_ANSWERS_MS)]);
    this.server.closeAllConnections();
  }

  private async allDealtAreGone(): Promise<void> {
    while (this.dealt.size > 0) await delay(10);
  }

  /** A renewed certificate is taken without a restart; one that cannot be read is told of, and the old one stays. */
  private followCertificate(tls: TlsFiles): void {
    let known = changedAt(tls);
    this.certificateTimer = setInterval(() => {
      const now = changedAt(tls);
      if (now === known) return;
      known = now;
      try {
        (this.server as TlsServer).setSecureContext(readPair(tls));
      } catch (error) {
        say(`quern: the new certificate cannot be used: ${(error as Error).message}`);
      }
    }, CERTIFICATE_LOOK_MS).unref();
  }
}

function tlsServer(limits: ServerOptions, tls: TlsFiles): TlsServer {
  const server = createTlsServer({ ...limits, ...readPair(tls), handshakeTimeout: HEADERS_MS });
  boundHandshakes(server);
  return server;
}

function readPair({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

/** Empty while a file is being replaced. */
function changedAt({ cert, key }: TlsFiles): string {
  try {
    return [cert, key].map((file) => `${statSync(file).mtimeMs} ${statSync(file).ino}`).join();
  } catch {
    return "";
  }
}
