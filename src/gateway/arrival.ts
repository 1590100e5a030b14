/**
 * One request to a real-time API, from its head until its body is complete and the request may pass. On the hot path:
 * body bytes are kept as they came, and nothing is parsed.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget, BodyOwner } from "../access/body-budget.ts";
import { keepPart } from "../access/body-parts.ts";
import { bodiesFull, bodyTooSlow, watchPace } from "../access/held-body.ts";
import type { Need, Principal } from "../access/permission.ts";
import { reportFault } from "../base/boundary.ts";
import { asServiceError, ServiceError } from "../contracts/errors.ts";
import { SMALL_BODY_BYTES } from "../contracts/limits.ts";
import type { AddressRoute } from "../contracts/routes.ts";
import { discardRest } from "./answers/discard-rest.ts";
import { PredictionRequest } from "./answers/prediction-request.ts";
import { refuse } from "./answers/refuse.ts";
import { type Authorization, refusal } from "./door/authorization.ts";
import { metaOf } from "./payload-meta.ts";
import type { ApiPool } from "./replicas/api-pool.ts";

/** If a body is complete this soon after its head, the key's expiry is not checked again. */
const BODY_AT_ONCE_MS = 10;

/** The destination of a request: the address that the client used, and the API that responds. */
export interface Destination {
  address: AddressRoute;
  pool: ApiPool;
  /** True if a TrafficSplitter chose the API; the response then names it. */
  isChosen?: boolean;
  /** Gets a copy of the request; its response is dropped. */
  shadow?: ApiPool | undefined;
}

export interface ArrivalDeps {
  authorization: Authorization;
  maxBodyBytes: number;
  bodies: BodyBudget;
  /** Whether an address that needed no key before needs one now. */
  asksForKey: (address: AddressRoute) => boolean;
}

export class Arrival {
  private readonly deps: ArrivalDeps;
  private readonly destination: Destination;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly requestId: string;
  private readonly startedMs = performance.now();
  private readonly chunks: Buffer[] = [];
  /** Total bytes of `chunks`. */
  private bytes = 0;
  /** The block into which small chunks are merged. */
  private block: Buffer | undefined;
  /** The id of the key that admitted the request; undefined if none was needed. */
  private key: string | undefined;
  /** The version of the keys when the request was admitted. */
  private keysVersion: object | undefined;
  /** Bytes of the budget that this body has reserved. */
  private reserved = 0;
  /** The sender and API that these bytes are charged to; undefined if the budget had plenty. */
  private bodyOwner: BodyOwner | undefined;
  private stopWatching: (() => void) | undefined;
  /** How many predictions still need the body: the request itself, and its copy for a shadow. */
  private bodyUsers = 0;
  private prediction: PredictionRequest | undefined;
  /** The fault in the request's head, if there is one. Only callers that are admitted learn it. */
  private problem: ServiceError | undefined;

  constructor(
    deps: ArrivalDeps,
    destination: Destination,
    exchange: { request: IncomingMessage; response: ServerResponse; requestId: string },
  ) {
    this.deps = deps;
    this.destination = destination;
    this.request = exchange.request;
    this.response = exchange.response;
    this.requestId = exchange.requestId;
    this.response.on("close", () => this.onClose());
  }

  /**
   * Receives the request if it may pass. A token may have to be verified first; a signature is verified with the body.
   */
  begin(problem: ServiceError | undefined): void {
    this.problem = problem;
    const { authorization } = this.deps;
    const { address } = this.destination;
    if (!address.needs_key) {
      this.keysVersion = authorization.keysVersion;
      return this.receive(false);
    }
    if (authorization.isSigned(this.request)) return this.receiveSigned();
    const principal = authorization.tokenPrincipal(this.request);
    if (principal instanceof Promise) {
      principal
        .then((verified) => {
          // The client has left: nothing would release what its body reserves.
          if (this.response.destroyed) return;
          if (this.isAllowed(verified)) this.receive(false);
        })
        .catch((error: unknown) => this.refuse(error));
    } else if (this.isAllowed(principal)) this.receive(false);
  }

  /** Responds at once and drops the rest of the body. */
  refuse(thrown: unknown): void {
    const error = asServiceError(thrown);
    this.destination.pool.tally.rejected(error.code);
    this.request.removeAllListeners("data");
    this.chunks.length = 0;
    this.stopWatching?.();
    this.releaseBody();
    refuse(this.request, this.response, error, this.requestId);
  }

  /** If the head already shows that the request cannot pass, nothing of the body is kept. */
  private receiveSigned(): void {
    try {
      this.key = this.deps.authorization.assertSignedHead(this.request)?.id;
    } catch (error) {
      return this.refuse(error);
    }
    this.receive(true);
  }

  /** `isSigned`: the signature is verified when the body is complete. */
  private receive(isSigned: boolean): void {
    const { request } = this;
    if (this.problem !== undefined) return this.refuse(this.problem);
    if (!isSigned) this.nameChoice();
    const isPost = request.method === "POST";
    if (!isPost && !isSigned) return this.describe();
    const refusal = isPost ? this.destination.pool.refusal() : undefined;
    if (refusal !== undefined) return this.refuse(refusal);
    const announced = request.headers["content-length"];
    if (announced === undefined || !this.deps.bodies.isPlenty(Number(announced)))
      this.bodyOwner = { sender: this.sender(), api: this.destination.address.name };
    if (announced !== undefined && !this.reserve(Number(announced))) return this.refuse(bodiesFull());
    if (request.headers.expect !== undefined) this.response.writeContinue();
    if (announced !== undefined) request.on("data", (chunk: Buffer) => this.keep(chunk));
    else request.on("data", (chunk: Buffer) => this.takeChunk(chunk));
    request.on("end", () => this.onBody(isSigned, isPost));
  }

  /** Catches everything, because no caller above this belongs to the request. */
  private onBody(isSigned: boolean, isPost: boolean): void {
    try {
      this.stopWatching?.();
      if (this.response.headersSent) return;
      if (isSigned && !this.isSignerAllowed()) return;
      if (!this.isStillAllowed(isSigned)) return;
      if (isSigned) this.nameChoice();
      if (isPost) this.submit();
      else this.describe();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Only callers that are admitted learn which API was chosen. */
  private nameChoice(): void {
    const { isChosen, pool } = this.destination;
    if (isChosen === true) this.response.setHeader("x-quern-api", pool.route.name);
  }

  /** Takes a chunk of a body whose length was not announced. */
  private takeChunk(chunk: Buffer): void {
    const { maxBodyBytes } = this.deps;
    if (this.bytes + chunk.length > maxBodyBytes) this.refuse(bodyTooLarge(maxBodyBytes));
    else if (this.reserve(chunk.length)) this.keep(chunk);
    else this.refuse(bodiesFull());
  }

  private keep(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.block = keepPart(this.chunks, chunk, this.block);
  }

  private reserve(bytes: number): boolean {
    const inAll = this.reserved + bytes;
    if (!this.deps.bodies.reserve(bytes, this.bodyOwner, inAll)) return false;
    this.reserved = inAll;
    if (inAll > SMALL_BODY_BYTES) this.stopWatching ??= this.watch();
    return true;
  }

  /** Refuses a large body that stops coming, so that others get its bytes of the budget. */
  private watch(): () => void {
    return watchPace(
      () => this.reserved,
      () => this.bytes,
      () => this.refuse(bodyTooSlow()),
    );
  }

  private sender(): string {
    return this.key ?? this.request.socket.remoteAddress ?? "";
  }

  /** One of the predictions no longer needs the body. */
  bodyDone(): void {
    if (--this.bodyUsers === 0) this.releaseBody();
  }

  private releaseBody(): void {
    this.deps.bodies.release(this.reserved, this.bodyOwner);
    this.reserved = 0;
  }

  private submit(): void {
    const { request, requestId, startedMs, chunks: body } = this;
    const { pool, shadow } = this.destination;
    const wantsEvents = request.headers.accept?.includes("text/event-stream") ?? false;
    const meta = metaOf(pool.route, request);
    this.bodyUsers = shadow === undefined ? 1 : 2;
    // Each field is named, because spreading an object here costs 6 us, a sixth of a request.
    this.prediction = new PredictionRequest(this.response, {
      startedMs,
      requestId,
      meta,
      body,
      wantsEvents,
      owner: this,
    });
    if (shadow !== undefined) {
      const theirs = metaOf(shadow.route, request);
      shadow.submit(
        new PredictionRequest(undefined, {
          startedMs,
          requestId,
          meta: theirs,
          body,
          wantsEvents: false,
          owner: this,
        }),
      );
    }
    pool.submit(this.prediction);
  }

  /** GET says what the address is. */
  private describe(): void {
    const { name, endpoint } = this.destination.address;
    const message = "make a prediction by sending a POST request to this endpoint with a JSON payload";
    const body = Buffer.from(JSON.stringify({ message, api: name, endpoint }));
    this.response.writeHead(200, {
      "content-type": "application/json",
      "content-length": body.length,
      "x-request-id": this.requestId,
    });
    this.response.end(this.request.method === "HEAD" ? undefined : body);
    discardRest(this.request);
  }

  private isAllowed(tokenPrincipal: Principal | undefined): boolean {
    const need: Need = { scope: "predict", api: this.destination.address.name };
    try {
      this.key = this.deps.authorization.assert(this.request, this.response, need, tokenPrincipal).id;
      this.keysVersion = this.deps.authorization.keysVersion;
      return true;
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }

  /**
   * A body may arrive minutes after its head was checked. By then the key may be revoked, or the server's first key
   * created.
   */
  private isStillAllowed(isSigned: boolean): boolean {
    const { authorization } = this.deps;
    if (isSigned) return true;
    const isAtOnce = performance.now() - this.startedMs < BODY_AT_ONCE_MS;
    if (isAtOnce && authorization.keysVersion === this.keysVersion) return true;
    if (this.isStillOpen()) return true;
    this.refuse(refusal(this.request));
    return false;
  }

  /**
   * Whether the request would still be admitted: its key is valid, or the address still needs none. If the address
   * needs a key only now, the request must present a known one.
   */
  isStillOpen(): boolean {
    const { authorization, asksForKey } = this.deps;
    if (this.key !== undefined) return authorization.isStillOpen(this.request);
    return !asksForKey(this.destination.address) || authorization.hasKey(this.request);
  }

  private isSignerAllowed(): boolean {
    try {
      return this.isAllowed(this.deps.authorization.signer(this.request, this.chunks, "prediction"));
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }

  private onClose(): void {
    const { pool } = this.destination;
    try {
      this.stopWatching?.();
      if (this.prediction === undefined) this.releaseBody();
      pool.tally.answered(this.status(), performance.now() - this.startedMs);
      if (this.prediction !== undefined) pool.abandon(this.prediction);
    } catch (error) {
      reportFault(error, `a request of ${pool.route.name}`);
    }
  }

  /** The status as the client saw it: 0 if the client left before the end, 500 if a stream broke off. */
  private status(): number {
    const { response, prediction } = this;
    if (response.writableFinished) return response.statusCode;
    // If the response was ended, it was complete, and the client did not read it.
    const isBroken = prediction?.stream !== undefined && !response.writableEnded;
    return isBroken && prediction!.isAnswered && !prediction!.isAbandoned ? 500 : 0;
  }
}

export function bodyTooLarge(maxBodyBytes: number): ServiceError {
  return new ServiceError(
    "body_too_large",
    `the body has more than ${maxBodyBytes} bytes; start the server with a larger --max-body, or send less`,
  );
}
