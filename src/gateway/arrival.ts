/**
 * One request to a real-time API, from its head until its body is complete and the request may pass, and its end. On
 * the hot path.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget } from "../access/body-budget.ts";
import { bodiesFull, bodyTooSlow } from "../access/held-body.ts";
import type { PaceWatch } from "../access/pace-watch.ts";
import type { Principal } from "../access/permission.ts";
import { reportFault } from "../base/boundary.ts";
import { asServiceError, type ServiceError } from "../contracts/errors.ts";
import { REQUEST_BYTES, SHORT_HEAD_BYTES } from "../contracts/limits/requests.ts";
import type { Access, AccessLog } from "../observe/access-log.ts";
import { ResponseBytes } from "../observe/response-bytes.ts";
import { describeEndpoint } from "./answers/describe-endpoint.ts";
import { type ArrivedRequest, PredictionRequest } from "./answers/prediction-request.ts";
import { refuse } from "./answers/refuse.ts";
import { ArrivingBody, bodyTooLarge } from "./arriving-body.ts";
import type { Destination } from "./destination.ts";
import { Admission, type AdmissionRules } from "./door/admission.ts";
import { keepCredentials } from "./door/authorization.ts";
import { headBytes, RequestHead } from "./payload-meta.ts";
import type { ShadowCopies } from "./replicas/shadow-copies.ts";

export interface ArrivalDeps extends AdmissionRules {
  maxBodyBytes: number;
  bodies: BodyBudget;
  copies: ShadowCopies;
  /** Watches small bodies of which a part is still to come. */
  pace: PaceWatch;
  /** Undefined without `--access-log`. */
  accessLog: AccessLog | undefined;
}

export class Arrival implements ArrivedRequest {
  private readonly deps: ArrivalDeps;
  private readonly destination: Destination;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  readonly requestId: string;
  readonly startedMs = performance.now();
  private readonly sent: ResponseBytes | undefined;
  private readonly admission: Admission;
  private readonly body: ArrivingBody;
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
    this.sent = deps.accessLog && new ResponseBytes(exchange.response, exchange.request.socket);
    this.admission = new Admission(deps, exchange.request, destination.address);
    const announced = exchange.request.headers["content-length"];
    this.body = new ArrivingBody(deps.bodies, announced, headBytes(exchange.request) + REQUEST_BYTES);
    this.response.on("close", () => this.onClose());
  }

  /**
   * Receives the request if it may pass. A token may have to be verified first; a signature is verified with the body.
   */
  begin(problem: ServiceError | undefined): void {
    this.problem = problem;
    const { authorization } = this.deps;
    if (!this.destination.address.needs_key) {
      this.admission.admitAnyone();
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
    this.body.parts.length = 0;
    this.body.close();
    this.body.release();
    refuse(this.request, this.response, error, this.requestId);
  }

  /** If the head already shows that the request cannot pass, nothing of the body is kept. */
  private receiveSigned(): void {
    try {
      this.admission.assertSignedHead();
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
    const { body } = this;
    // Small bodies reserve what has arrived: those that are announced and never sent would take others' bytes.
    if (body.isReservedAhead) {
      this.charge();
      if (!this.reserve(body.size)) return this.refuse(bodiesFull());
      request.on("data", (chunk: Buffer) => body.keep(chunk));
    } else request.on("data", (chunk: Buffer) => this.takeChunk(chunk));
    if (isSigned) this.admission.hashBody();
    if (request.headers.expect !== undefined) this.response.writeContinue();
    request.on("end", () => this.onBody(isSigned, isPost));
  }

  /** Catches everything, because no caller above this belongs to the request. */
  private onBody(isSigned: boolean, isPost: boolean): void {
    try {
      this.body.close();
      if (this.response.headersSent) return;
      if (isSigned) this.admission.assertSigned(this.response);
      else this.admission.assertStillOpen(performance.now() - this.startedMs);
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

  /** Takes a chunk of a body that is small, or whose length was not announced. */
  private takeChunk(chunk: Buffer): void {
    const { body, deps } = this;
    const { maxBodyBytes } = deps;
    const bytes = body.bytes + chunk.length;
    if (bytes > maxBodyBytes) return this.refuse(bodyTooLarge(maxBodyBytes));
    if (!this.hold(bytes)) return this.refuse(bodiesFull());
    body.keep(chunk);
    if (!body.isWhole && !this.request.complete) body.watchIn(deps.pace, () => this.refuse(bodyTooSlow()));
  }

  /** Reserves so many bytes of a body that is small, or whose length was not announced. */
  private hold(bytes: number): boolean {
    const { body, deps } = this;
    if (!body.isCharged && !deps.bodies.isPlenty(body.withHead(bytes))) this.charge();
    return this.reserve(bytes);
  }

  private charge(): void {
    this.body.charge({ sender: this.admission.sender, api: this.destination.address.name });
  }

  private reserve(inAll: number): boolean {
    const { body } = this;
    if (!body.reserve(inAll)) return false;
    // Refuses a large body that stops coming, so that others get its bytes of the budget.
    if (body.needsWatch) body.watch(() => this.refuse(bodyTooSlow()));
    return true;
  }

  get parts(): readonly Buffer[] {
    return this.body.parts;
  }

  bodyDone(): void {
    this.body.release();
  }

  isStillOpen(): boolean {
    return this.admission.isStillOpen();
  }

  private submit(): void {
    const { request, body } = this;
    const { pool, shadow } = this.destination;
    if (body.held === 0 && !this.hold(0)) return this.refuse(bodiesFull());
    const wantsEvents = request.headers.accept?.includes("text/event-stream") ?? false;
    const head = new RequestHead(request, this.requestId);
    this.prediction = new PredictionRequest(this.response, this, head, wantsEvents);
    if (shadow !== undefined) this.deps.copies.send(shadow, this, body.held, head);
    if (body.withHead(0) > REQUEST_BYTES + SHORT_HEAD_BYTES) keepCredentials(request);
    pool.submit(this.prediction);
  }

  private describe(): void {
    describeEndpoint(this.request, this.response, this.requestId, this.destination.address);
  }

  private isAllowed(tokenPrincipal: Principal | undefined): boolean {
    try {
      this.admission.assert(this.response, tokenPrincipal);
      return true;
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }

  private onClose(): void {
    const { pool } = this.destination;
    try {
      this.body.close();
      if (this.prediction === undefined) this.body.release();
      const status = this.status();
      const tookMs = performance.now() - this.startedMs;
      pool.tally.answered(status, tookMs);
      this.deps.accessLog?.record(this.accessOf(status, tookMs));
      if (this.prediction !== undefined) pool.abandon(this.prediction);
    } catch (error) {
      reportFault(error, `a request of ${pool.route.name}`);
    }
  }

  private accessOf(status: number, tookMs: number): Access {
    const { request, requestId, body, admission } = this;
    const { route } = this.destination.pool;
    const bytes = { request: body.bytes, response: this.sent?.count ?? 0 };
    return { request, requestId, route, status, tookMs, bytes, key: admission.keyId };
  }

  /** The status as the client saw it: 0 if the client left before the end, 500 if a stream broke off. */
  private status(): number {
    const { response, prediction } = this;
    if (response.writableFinished) return response.statusCode;
    // If the stream is complete, the client did not read it.
    const isBroken = prediction?.stream?.isComplete === false;
    return isBroken && prediction!.isAnswered && !prediction!.isAbandoned ? 500 : 0;
  }
}
