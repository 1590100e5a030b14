/**
 * One request to a real-time API, from its head until its body is here and it may pass. On the hot path: body bytes are kept
 * as they came, nothing is parsed.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget, BodyOwner } from "../access/body-budget.ts";
import { keepPart } from "../access/body-parts.ts";
import { bodiesFull, bodyTooSlow, watchPace } from "../access/held-body.ts";
import type { Holder, Need } from "../access/permission.ts";
import { reportFault } from "../base/boundary.ts";
import { asServiceError, ServiceError } from "../contracts/errors.ts";
import { SMALL_BODY_BYTES } from "../contracts/limits.ts";
import type { AddressRoute } from "../contracts/routes.ts";
import type { ApiPool } from "./api-pool.ts";
import { type Authorization, refusal } from "./authorization.ts";
import { discardRest } from "./discard-rest.ts";
import { metaOf } from "./payload-meta.ts";
import { Prediction } from "./prediction.ts";
import { refuse } from "./refuse.ts";

/** A body that is here so soon is not asked whether its key has expired since its head. */
const BODY_AT_ONCE_MS = 10;

/** Where a request goes: the address that was asked for, and the API that is to answer. */
export interface Destination {
  address: AddressRoute;
  pool: ApiPool;
  /** Of several, which the answer says. */
  isChosen?: boolean;
  /** Gets a copy; its answer is dropped. */
  shadow?: ApiPool | undefined;
}

export interface ArrivalDeps {
  authorization: Authorization;
  maxBodyBytes: number;
  bodies: BodyBudget;
  /** Whether an address that asked for no key does so now. */
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
  /** In all of them. */
  private bytes = 0;
  /** Small ones are put together there. */
  private block: Buffer | undefined;
  /** The id of the key that let the request in; undefined where none was asked for. */
  private key: string | undefined;
  /** When it was let in. */
  private keysVersion: object | undefined;
  /** Bytes of the budget that this body has, and who they are charged to; nobody while there is plenty. */
  private reserved = 0;
  private bodyOwner: BodyOwner | undefined;
  private stopWatching: (() => void) | undefined;
  /** The prediction and its copy for a shadow, as long as they need the body. */
  private bodyUsers = 0;
  private prediction: Prediction | undefined;
  /** What is wrong with the request's head, which is told to those who may come in. */
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

  /** Takes the request where it may pass: at once, when its token has been verified, or with its signed body. */
  begin(problem: ServiceError | undefined): void {
    this.problem = problem;
    const { authorization } = this.deps;
    const { address } = this.destination;
    if (!address.needs_key) {
      this.keysVersion = authorization.keysVersion;
      return this.receive(false);
    }
    if (authorization.isSigned(this.request)) return this.receiveSigned();
    const holder = authorization.tokenHolder(this.request);
    if (holder instanceof Promise) {
      holder
        .then((verified) => {
          // The client has left: nobody would give back what its body reserved.
          if (this.response.destroyed) return;
          if (this.isAllowed(verified)) this.receive(false);
        })
        .catch((error: unknown) => this.refuse(error));
    } else if (this.isAllowed(holder)) this.receive(false);
  }

  /** Answers at once: the rest of the body is not wanted. */
  refuse(thrown: unknown): void {
    const error = asServiceError(thrown);
    this.destination.pool.tally.rejected(error.code);
    this.request.removeAllListeners("data");
    this.chunks.length = 0;
    this.stopWatching?.();
    this.releaseBody();
    refuse(this.request, this.response, error, this.requestId);
  }

  /** Nothing is kept of a request whose head shows that it cannot pass. */
  private receiveSigned(): void {
    try {
      this.key = this.deps.authorization.assertSignedHead(this.request)?.id;
    } catch (error) {
      return this.refuse(error);
    }
    this.receive(true);
  }

  /** `isSigned`: who it is from shows with the whole body only. */
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

  /** What is thrown here is this request's: nobody else is above. */
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

  /** Which of several was chosen is for those who may come in. */
  private nameChoice(): void {
    const { isChosen, pool } = this.destination;
    if (isChosen === true) this.response.setHeader("x-quern-api", pool.route.name);
  }

  /** Of a body whose length nobody has announced. */
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

  /** A large body that does not come gives its room to others. */
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

  /** A prediction needs the body no more. */
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
    // Each field by name: to spread an object here costs 6 us, a sixth of a request.
    this.prediction = new Prediction(this.response, {
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
        new Prediction(undefined, {
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

  private isAllowed(tokenHolder: Holder | undefined): boolean {
    const need: Need = { scope: "predict", api: this.destination.address.name };
    try {
      this.key = this.deps.authorization.assert(this.request, this.response, need, tokenHolder).id;
      this.keysVersion = this.deps.authorization.keysVersion;
      return true;
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }

  /** A body may come minutes behind the head that was judged: its key may be revoked by then, or the first key be made. */
  private isStillAllowed(isSigned: boolean): boolean {
    const { authorization } = this.deps;
    if (isSigned) return true;
    const isAtOnce = performance.now() - this.startedMs < BODY_AT_ONCE_MS;
    if (isAtOnce && authorization.keysVersion === this.keysVersion) return true;
    if (this.isStillOpen()) return true;
    this.refuse(refusal(this.request));
    return false;
  }

  /** Whether what let the request in still does: its key, or that none was asked for; without that, what came as a key may be any text. */
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

  /** Of the answer, as the client saw it: 0 where it left before it had all of it, 500 where a stream broke off. */
  private status(): number {
    const { response, prediction } = this;
    if (response.writableFinished) return response.statusCode;
    // What was ended was whole: it is the client that has not taken it.
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
