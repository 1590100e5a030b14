/**
 * The data-plane process. It owns no state: routes come from the controller or its snapshot file, the listening sockets
 * from the parent. With `controller.ts` the only place that wires rooms together.
 */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { BodyBudget } from "../access/body-budget.ts";
import { HeldBody } from "../access/held-body.ts";
import { type HostRules, isAllowedOrigin, isOurHost } from "../access/host-check.ts";
import type { JwtVerifier } from "../access/jwt.ts";
import type { Holder } from "../access/permission.ts";
import { parseCredentials, type SignatureRules } from "../access/sigv4.ts";
import { contain } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import { openLog } from "../base/log.ts";
import { isSameProcess, signalGroup } from "../base/process-identity.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Forwarded, ListenerName } from "../contracts/forwarded.ts";
import {
  HELD_BODIES_BYTES_MAX,
  HELD_SMALL_BODIES_BYTES,
  SMALL_BODY_BYTES,
  SUBMISSION_BYTES_LIMIT,
} from "../contracts/limits.ts";
import type { AddressRoute, ReplicaRoute } from "../contracts/routes.ts";
import { hideInText } from "../contracts/secrets.ts";
import { PROOF_PATH } from "../contracts/server-proof.ts";
import { LoopDelayMeter } from "../observe/loop-delay.ts";
import { Authorization, type SignatureRepeats } from "./authorization.ts";
import { ClientAddress } from "./client-address.ts";
import { collectBody } from "./collect-body.ts";
import { allowOrigin, answerOptions, foreignOrigin, originsOf } from "./cors.ts";
import { destinationOf, type PredictionEndpoint } from "./destination.ts";
import { closeUnasked, discardRest } from "./discard-rest.ts";
import { Expiry } from "./expiry.ts";
import { forward } from "./forward.ts";
import { Inside } from "./inside.ts";
import { Listener, type ListenOn, type TlsFiles } from "./listener.ts";
import { sendError } from "./prediction.ts";
import { Predictions } from "./predictions.ts";
import { answerProof } from "./proof.ts";
import { refuse } from "./refuse.ts";
import { targetFault } from "./request-target.ts";
import { RouteTable } from "./route-table.ts";
import { refuseStranger, StrangersAskedFor } from "./strangers.ts";
import { misdirected, notCanonical, pathEnd, unknownAddress } from "./target-errors.ts";

const REPORT_EVERY_MS = 1_000;
/** What has not changed is told this often, so that the controller does not take us for gone (after 60 s). */
const REPORT_ANYWAY_MS = 20_000;
/** Where the controller is gone too, the last second's counts are lost. */
const LAST_REPORT_MS = 1_000;
/** A call of a job may need an answer that can no longer be asked for. */
const LAST_CALLS_MS = 5_000;
const SANE_REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

export interface SignatureOptions {
  /** A file. */
  credentials: string;
  /** Empty is any. */
  regions: readonly string[];
  services: readonly string[];
  repeats: SignatureRepeats;
}

export interface GatewayOptions {
  /** The parent's listening socket, or an address to listen on. */
  listen: ListenOn;
  /** `--control-listen`: where the control plane is instead, and APIs with `api_gateway: none` too. */
  controlListen: ListenOn | undefined;
  /** On loopback, without TLS: where user code calls other APIs. */
  insideListen: ListenOn;
  apiPort: number;
  /** The main listener's address, as a client on this machine reaches it. */
  mainUrl: string;
  tls: TlsFiles | undefined;
  controllerSocket: string;
  /** The controller's socket for gateways only. */
  internalSocket: string;
  routesFile: string;
  rules: Record<Exclude<ListenerName, "inside">, HostRules>;
  publicUrl: string | undefined;
  trustedProxies: readonly string[];
  /** Whose tokens are taken beside keys. */
  jwt: JwtVerifier | undefined;
  /** AWS signatures that are taken beside keys. */
  sigv4: SignatureOptions | undefined;
  /** How many gateways share the load, this one included. */
  gateways: number;
  maxBodyBytes: number;
}

/** A listening socket, and what is reached there. */
interface Entrance {
  name: ListenerName;
  /** The control plane is there. */
  hasControl: boolean;
  rules: HostRules;
}

export class Gateway {
  private readonly options: GatewayOptions;
  private readonly routes: RouteTable;
  private readonly authorization: Authorization;
  private readonly bodies: BodyBudget;
  private readonly predictions: Predictions;
  private readonly clients: ClientAddress;
  private readonly inside: Inside;
  private readonly insideListener: Listener;
  private readonly listeners: Listener[];
  private readonly log = openLog("gateway", undefined, hideInText);
  private readonly loop = new LoopDelayMeter();
  private readonly expiry = new Expiry((nowMs) => this.routes.expire(nowMs));
  private readonly strangers = new StrangersAskedFor();
  private readonly idPrefix = randomBytes(6).toString("hex");
  private requests = 0;
  private timers: NodeJS.Timeout[] = [];
  /** What the controller was told last, and at which of the connections to it. */
  private reported = { text: "", connections: 0, atMs: 0 };

  constructor(options: GatewayOptions) {
    this.options = options;
    const { routesFile: file, internalSocket, publicUrl, trustedProxies, maxBodyBytes, tls } = options;
    this.routes = new RouteTable({
      file,
      internalSocket,
      pool: {
        kill: (replica) => this.tell(`/workers/${replica.worker_id}/kill`, () => killHere(replica)),
        replace: (replica) => this.tell(`/workers/${replica.worker_id}/replace`, () => killHere(replica)),
        wake: (api) => this.tell(`/apis/${api}/wake`, () => {}),
        broken: ({ worker_id }, broken) =>
          this.log.error({ worker_id, broken }, "a replica broke the protocol and is replaced"),
        onDeadline: () => this.expiry.arm(),
      },
      onApplied: () => this.inside.endRevoked(),
    });
    this.authorization = new Authorization({
      findKey: (sha256) => this.routes.holder(sha256),
      keysVersion: () => this.routes.keysVersion,
      jwt: options.jwt,
      signatures: options.sigv4 === undefined ? undefined : signatureRules(options.sigv4),
      gateways: options.gateways,
    });
    this.bodies = new BodyBudget({
      most: Math.max(HELD_BODIES_BYTES_MAX, maxBodyBytes + HELD_SMALL_BODIES_BYTES),
      forSmall: HELD_SMALL_BODIES_BYTES,
      smallBytes: SMALL_BODY_BYTES,
    });
    const { authorization, bodies } = this;
    const asksForKey = ({ endpoint }: AddressRoute) =>
      this.routes.endpoints.find(endpoint)?.address.needs_key === true;
    this.predictions = new Predictions({ maxBodyBytes, authorization, bodies, asksForKey });
    this.clients = new ClientAddress({ publicUrl, trustedProxies, isTls: tls !== undefined });
    const { listen, controlListen, rules, controllerSocket, mainUrl } = options;
    this.inside = new Inside({
      routes: this.routes,
      // Its capability is all that user code needs.
      predictions: new Predictions({ maxBodyBytes, authorization, bodies, asksForKey: () => false }),
      port: options.apiPort,
      controllerSocket,
      baseUrl: publicUrl ?? mainUrl,
    });
    this.insideListener = new Listener(options.insideListen, undefined, (request, response) => {
      this.loop.touch();
      this.inside.take({ request, response, requestId: this.requestId(request) });
    });
    const open = (on: ListenOn, entrance: Entrance) =>
      new Listener(on, tls, (request, response) => this.take(request, response, entrance));
    this.listeners = [
      open(listen, { name: "main", hasControl: controlListen === undefined, rules: rules.main }),
      ...(controlListen === undefined
        ? []
        : [open(controlListen, { name: "control", hasControl: true, rules: rules.control })]),
    ];
  }

  async start(): Promise<void> {
    await this.routes.start();
    for (const listener of [this.insideListener, ...this.listeners]) await listener.start();
    this.timers = [
      setInterval(() => contain("the report to the controller", () => this.reportChange()), REPORT_EVERY_MS),
    ];
  }

  /** A connection that the parent has accepted, on the main listener (0), the one for user code (1) or the control plane's. */
  accept(socket: Socket, listener: number): void {
    const [main, control] = this.listeners;
    contain(
      "a connection",
      () => [main, this.insideListener, control][listener]!.accept(socket),
      () => socket.destroy(),
    );
  }

  /**
   * No new connections; requests under way are answered. What they need of other APIs is answered too: `allAreIdle` resolves when no gateway has
   * requests from outside. Calls of jobs wait then until their workers are told to stop: were they refused, batches would use up their attempts.
   */
  async stop(allAreIdle: () => Promise<void>, isParentGone: boolean): Promise<void> {
    const isIdle = () => this.routes.underWay <= this.inside.ofJobs;
    // The next parent needs the port at once, and its gateways take those calls.
    const first = isParentGone ? [...this.listeners, this.insideListener] : this.listeners;
    await Promise.all(first.map((listener) => listener.drain(isIdle)));
    await allAreIdle();
    const endMs = performance.now() + LAST_CALLS_MS;
    await this.insideListener.drain(() => this.routes.underWay === 0 || performance.now() > endMs);
    for (const timer of this.timers) clearInterval(timer);
    this.expiry.stop();
    this.loop.stop();
    await Promise.race([
      new Promise<void>((resolve) => this.report(undefined, resolve)),
      delay(LAST_REPORT_MS),
    ]);
    await this.routes.stop();
  }

  /** What a request throws that nobody expected is its own 500. */
  private take(request: IncomingMessage, response: ServerResponse, entrance: Entrance): void {
    this.loop.touch();
    const requestId = this.requestId(request);
    try {
      this.route(request, response, entrance, requestId);
    } catch (error) {
      refuse(request, response, error, requestId);
    }
  }

  private route(
    request: IncomingMessage,
    response: ServerResponse,
    entrance: Entrance,
    requestId: string,
  ): void {
    if (!isOurHost(request.headers.host, entrance.rules))
      return refuse(request, response, misdirected(request.headers.host), requestId);
    const url = request.url!;
    const path = url.slice(0, pathEnd(url));
    const fault = targetFault(path);
    if (fault !== undefined) return refuse(request, response, notCanonical(path, fault), requestId);
    if (path.startsWith("/-")) return this.takeControl(request, response, requestId, path, entrance);
    const endpoint = this.routes.endpoints.find(path);
    const isReached = endpoint?.address.is_public === true || this.isInternal(request, entrance);
    if (endpoint === undefined || !isReached)
      return this.takeUnknown(request, response, requestId, path, entrance);
    if (endpoint.kind !== "BatchAPI")
      return this.takePrediction(endpoint, request, response, requestId, entrance);
    if (endpoint.address.needs_key && this.authorization.isStranger(request))
      return refuseStranger(request, response, requestId);
    this.forward(request, response, requestId, entrance, {
      path: `/${endpoint.address.name}${url.slice(endpoint.address.endpoint.length)}`,
      endpoint: endpoint.address.endpoint,
    });
  }

  private takePrediction(
    endpoint: PredictionEndpoint,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    entrance: Entrance,
  ): void {
    const { address } = endpoint;
    const { origin } = request.headers;
    const isAllowed =
      origin !== undefined && allowOrigin(origin, response, originsOf(address, entrance.rules));
    if (request.method === "OPTIONS")
      return answerOptions(request, response, { isAllowed, isListed: address.cors_origins !== null });
    // Where nobody needs a key, a page of any origin could have its readers' browsers call for it.
    if (origin !== undefined && !isAllowed && !address.needs_key && this.isForeign(request, entrance))
      return refuse(request, response, foreignOrigin(origin, address.name), requestId);
    const destination = destinationOf(endpoint, request);
    if (destination === undefined)
      return refuse(request, response, unknownAddress(address.endpoint), requestId);
    this.predictions.take(destination, { request, response, requestId });
  }

  /** What we have not heard of: the controller may have deployed it a moment ago, or know its jobs still. */
  private takeUnknown(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    path: string,
    entrance: Entrance,
  ): void {
    const name = path.slice(1).split("/")[0]!;
    const { endpoints } = this.routes;
    if (name === "") return refuse(request, response, unknownAddress(path), requestId);
    if (!endpoints.asksForKeys) {
      if (endpoints.knows(name) && endpoints.find(path) === undefined)
        return refuse(request, response, unknownAddress(path), requestId);
      return this.forward(request, response, requestId, entrance);
    }
    const isStranger = this.authorization.isStranger(request);
    const isRefused =
      request.method === "OPTIONS" || endpoints.knows(name) || this.isForeign(request, entrance);
    if (isStranger && (isRefused || !this.strangers.take(response)))
      return refuseStranger(request, response, requestId);
    const onNothing = isStranger ? () => refuseStranger(request, response, requestId) : undefined;
    this.forward(request, response, requestId, entrance, { path: request.url!, onNothing });
  }

  private isInternal(request: IncomingMessage, { name }: Entrance): boolean {
    return name === "control" || this.clients.isLocal(request);
  }

  /** A page of another origin sent it, to change something or to have something done. */
  private isForeign(request: IncomingMessage, { rules }: Entrance): boolean {
    const { method, headers } = request;
    if (headers.origin === undefined || method === "GET" || method === "HEAD" || method === "OPTIONS")
      return false;
    return !isAllowedOrigin(headers.origin, [headers.host, this.clients.host(request)], rules);
  }

  private takeControl(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    path: string,
    entrance: Entrance,
  ): void {
    const isProof = path === PROOF_PATH && entrance.hasControl;
    const isProbe = path === "/-/livez" || path === "/-/readyz" || isProof;
    if (isProbe && request.method !== "GET" && request.method !== "HEAD") {
      const message = `${request.method} is not allowed here; allowed: GET`;
      const error = new ServiceError("method_not_allowed", message, { allow: "GET" });
      return refuse(request, response, error, requestId);
    }
    if (path === "/-/livez") return sendText(response, 200, "ok\n", requestId);
    if (path === "/-/readyz")
      return this.routes.isReady
        ? sendText(response, 200, "ok\n", requestId)
        : sendText(response, 503, "starting\n", requestId);
    if (isProof) answerProof(request, response, requestId, this.routes.adminTokenSha256);
    else if (entrance.hasControl) this.forward(request, response, requestId, entrance);
    else refuse(request, response, unknownAddress(path), requestId);
  }

  private forward(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    entrance: Entrance,
    {
      path,
      endpoint,
      onNothing,
    }: { path: string; endpoint?: string; onNothing?: (() => void) | undefined } = {
      path: request.url!,
    },
  ): void {
    let isAsked = false;
    const fail = (error: unknown) => {
      if (!isAsked) closeUnasked(request, response);
      sendError(response, error, requestId);
    };
    if (this.isForeign(request, entrance)) return fail(foreignOrigin(request.headers.origin!, undefined));
    const { controllerSocket } = this.options;
    const pass = (holder: Holder | undefined, body?: readonly Buffer[]) => {
      const forwarded: Forwarded = {
        baseUrl: this.clients.baseUrl(request),
        listener: entrance.name,
        client: request.socket.remoteAddress,
        isLocal: this.clients.isLocal(request),
        holder,
        endpoint,
      };
      forward(request, response, { controllerSocket, requestId, forwarded, body, path, onNothing }).catch(
        fail,
      );
    };
    let signer: Holder | undefined;
    try {
      this.authorization.countOnly(request, response);
      if (this.authorization.isSigned(request)) signer = this.authorization.assertSignedHead(request);
    } catch (error) {
      return fail(error);
    }
    if (this.authorization.isSigned(request)) {
      const sender = signer?.id ?? request.socket.remoteAddress ?? "";
      const held = new HeldBody(this.bodies, { sender, api: path.slice(0, pathEnd(path)).split("/")[1]! });
      response.once("close", () => held.release());
      const ask = () => {
        isAsked = true;
        if (request.headers.expect !== undefined) response.writeContinue();
      };
      collectBody(request, held, SUBMISSION_BYTES_LIMIT, ask)
        .then((body) => pass(this.authorization.signer(request, body, "other"), body))
        .catch((error: unknown) => {
          fail(error);
          discardRest(request);
        });
      return;
    }
    // The controller judges; a token is verified here, where it is remembered too.
    const holder = this.authorization.tokenHolder(request);
    if (holder instanceof Promise) holder.then(pass).catch(fail);
    else pass(holder);
  }

  private requestId(request: IncomingMessage): string {
    const given = request.headers["x-request-id"];
    if (typeof given === "string" && SANE_REQUEST_ID.test(given)) return given;
    return `${this.idPrefix}-${(this.requests++).toString(36)}`;
  }

  /** Asks the controller, which accounts for it; while there is none, what can be done is done here. */
  private tell(path: string, otherwise: () => void, body = "", onDone = () => {}): void {
    const ask = httpRequest({ socketPath: this.options.internalSocket, method: "POST", path });
    ask.on("error", otherwise);
    ask.on("response", (answer) => answer.resume());
    ask.on("close", onDone);
    ask.end(body);
  }

  /** Requests that are under way are told again and again: the controller counts them for a few seconds only. */
  private reportChange(): void {
    const text = this.reportText();
    const isKnown = text === this.reported.text && this.routes.connections === this.reported.connections;
    const isRecent = performance.now() - this.reported.atMs < REPORT_ANYWAY_MS;
    if (this.routes.underWay > 0 || !isKnown || !isRecent) this.report(text);
  }

  private reportText(): string {
    return JSON.stringify({ ...this.routes.report(), loop: this.loop.read() });
  }

  /** Lost where there is no controller: the next one tells the same. */
  private report(text = this.reportText(), onDone?: () => void): void {
    this.reported = { text, connections: this.routes.connections, atMs: performance.now() };
    const onLost = () => {
      this.reported.text = "";
    };
    this.tell("/reports", onLost, text, onDone);
  }
}

function signatureRules({ credentials, regions, services, repeats }: SignatureOptions): SignatureRules & {
  repeats: SignatureRepeats;
} {
  return {
    credentials: parseCredentials(readFileSync(credentials, "utf8")),
    scope: { regions, services },
    repeats,
  };
}

function killHere(replica: ReplicaRoute): void {
  if (isSameProcess(replica.pid, replica.process_start)) signalGroup(replica.pid, "SIGKILL");
}

function sendText(response: ServerResponse, status: number, text: string, requestId: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-request-id": requestId });
  response.end(text);
}
