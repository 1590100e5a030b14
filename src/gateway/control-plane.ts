/** Requests that are not predictions: they go to the controller, with what the gateway knows about the sender. */
import type { BodyBudget } from "../access/body-budget.ts";
import { HeldBody } from "../access/held-body.ts";
import type { Principal } from "../access/permission.ts";
import { BodyHash } from "../access/sigv4.ts";
import { addressOwner } from "../base/fair/address-owner.ts";
import { closeUnasked, discardRest } from "./answers/discard-rest.ts";
import { sendError } from "./answers/send-error.ts";
import { collectBody, collectSmall, smallBodyMost } from "./collect-body.ts";
import { setOwner } from "./connections/owners.ts";
import type { ControllerConnections } from "./controller-connections.ts";
import type { Authorization } from "./door/authorization.ts";
import type { ClientAddress } from "./door/client-address.ts";
import { foreignOrigin, isForeign } from "./door/cors.ts";
import { forward } from "./forward.ts";
import { pathEnd } from "./target-errors.ts";
import type { Visit } from "./visit.ts";

export interface ControlPlaneDeps {
  authorization: Authorization;
  bodies: BodyBudget;
  clients: ClientAddress;
  controller: ControllerConnections;
}

export interface Target {
  /** The path at the controller, which addresses a batch API by its name. */
  path: string;
  endpoint?: string;
  /** Responds instead if the controller does not admit the caller, or cannot be reached. */
  onNothing?: (() => void) | undefined;
}

/** How a body is collected, and what then happens with it. */
interface Collecting {
  collect: (held: HeldBody, ask: () => void) => Promise<readonly Buffer[]>;
  use: (body: readonly Buffer[], fail: (error: unknown) => void) => void;
}

export class ControlPlane {
  private readonly deps: ControlPlaneDeps;

  constructor(deps: ControlPlaneDeps) {
    this.deps = deps;
  }

  take(visit: Visit, target: Target = { path: visit.request.url! }): void {
    const { request, response, requestId, entrance } = visit;
    const { authorization, clients } = this.deps;
    const fail = (error: unknown) => {
      closeUnasked(request, response);
      sendError(response, error, requestId);
    };
    let signer: Principal | undefined;
    try {
      authorization.countOnly(request, response);
      if (isForeign(request, entrance.rules, clients))
        throw foreignOrigin(request.headers.origin!, undefined);
      if (authorization.isSigned(request)) signer = authorization.assertSignedHead(request);
    } catch (error) {
      return fail(error);
    }
    if (authorization.isSigned(request)) return this.takeSigned(visit, target, signer);
    // The controller decides. Tokens are verified here, because gateways remember verified tokens.
    const principal = authorization.tokenPrincipal(request);
    const pass = (known: Principal | undefined) => this.pass(visit, target, known, undefined, fail);
    if (principal instanceof Promise) principal.then(pass).catch(fail);
    else pass(principal);
  }

  /** A signature covers the body too, so the body is read before the request is judged. */
  private takeSigned(visit: Visit, target: Target, signer: Principal | undefined): void {
    const { request } = visit;
    const { authorization } = this.deps;
    const sender = signer?.id ?? addressOwner(request.socket.remoteAddress);
    const hash = new BodyHash(request.headers);
    this.collected(visit, target.path, sender, {
      collect: (held, ask) => collectBody(request, held, hash, ask),
      use: (body, fail) => this.pass(visit, target, authorization.signer(request, hash, "other"), body, fail),
    });
  }

  /** Gives the whole body to `use`, or refuses the request. */
  private collected(
    { request, response, requestId }: Visit,
    path: string,
    sender: string,
    { collect, use }: Collecting,
  ): void {
    let isAsked = false;
    const fail = (error: unknown) => {
      if (!isAsked) closeUnasked(request, response);
      sendError(response, error, requestId);
    };
    const api = path.slice(0, pathEnd(path)).split("/")[1]!;
    const held = new HeldBody(this.deps.bodies, { sender, api });
    response.once("close", () => held.release());
    const ask = () => {
      isAsked = true;
      if (request.headers.expect !== undefined) response.writeContinue();
    };
    collect(held, ask)
      .then((body) => use(body, fail))
      .catch((error: unknown) => {
        // The client left within its body, which is no fault.
        if (request.destroyed && !request.complete) return;
        fail(error);
        discardRest(request);
      });
  }

  private pass(
    visit: Visit,
    { path, endpoint, onNothing }: Target,
    principal: Principal | undefined,
    body: readonly Buffer[] | undefined,
    fail: (error: unknown) => void,
  ): void {
    const { request, response, requestId, entrance } = visit;
    const { authorization, bodies, clients, controller } = this.deps;
    const forwarded = {
      ...clients.urls(request),
      listener: entrance.name,
      client: addressOwner(request.socket.remoteAddress),
      isLocal: clients.isLocal(request),
      ...{ principal, endpoint },
    };
    const known = principal?.id ?? authorization.keyPrincipal(request)?.id;
    if (known !== undefined) setOwner(request.socket, known);
    const name = known ?? addressOwner(request.socket.remoteAddress);
    const sender = { name, isStranger: known === undefined };
    const options = { controller, bodies, sender, requestId, forwarded, path, onNothing };
    const send = (sent: readonly Buffer[] | undefined, refuse: (error: unknown) => void) => {
      forward(request, response, { ...options, body: sent }).catch(refuse);
    };
    const most =
      sender.isStranger && body === undefined ? smallBodyMost(request, endpoint !== undefined) : undefined;
    if (most === undefined) return send(body, fail);
    this.collected(visit, path, name, {
      collect: (held, ask) => collectSmall(request, held, most, ask),
      use: send,
    });
  }
}
