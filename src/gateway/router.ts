/** Routes a request by its host and path: to a real-time API, to the controller, or nowhere. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isOurHost } from "../access/host-check.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { ActiveServer } from "../contracts/messages.ts";
import { PROOF_PATH } from "../contracts/server-proof.ts";
import { refuse, refuseLast } from "./answers/refuse.ts";
import type { ControlPlane, Target } from "./control-plane.ts";
import { destinationOf, type PredictionEndpoint } from "./destination.ts";
import type { Authorization } from "./door/authorization.ts";
import type { ClientAddress } from "./door/client-address.ts";
import { allowOrigin, answerOptions, foreignOrigin, isForeign, originsOf } from "./door/cors.ts";
import { headFault } from "./door/head-fault.ts";
import { answerProof } from "./door/proof.ts";
import { targetFault } from "./door/request-target.ts";
import { refuseStranger, StrangersAskedFor } from "./door/strangers.ts";
import type { Predictions } from "./predictions.ts";
import type { RouteTable } from "./replicas/route-table.ts";
import { misdirected, notCanonical, pathEnd, standsBy, unknownAddress } from "./target-errors.ts";
import type { Visit } from "./visit.ts";

export interface RouterDeps {
  routes: RouteTable;
  authorization: Authorization;
  clients: ClientAddress;
  predictions: Predictions;
  controlPlane: ControlPlane;
}

export class Router {
  private readonly deps: RouterDeps;
  private readonly strangers = new StrangersAskedFor();
  /** The server stops soon, or now: new requests should go elsewhere (docs/contract/operations.md#drain-delay). */
  stopsSoon = false;
  /** Who has the database: this server, another one, or nobody knows yet. */
  private standing: "active" | "unknown" | ActiveServer;

  /** `isShared`: another server may have the database. So this one is not ready before it knows. */
  constructor(deps: RouterDeps, isShared: boolean) {
    this.deps = deps;
    this.standing = isShared ? "unknown" : "active";
  }

  /** Null: this server has the database. If another one has it, requests are refused, and replicas may end. */
  stand(active: ActiveServer | null): void {
    this.standing = active ?? "active";
    if (active !== null) this.deps.routes.leaveReplicas();
  }

  /** An unexpected exception becomes a 500 for this request only. */
  take(visit: Visit): void {
    try {
      this.route(visit);
    } catch (error) {
      refuseVisit(visit, error);
    }
  }

  private route(visit: Visit): void {
    const { request, entrance } = visit;
    const { routes, authorization } = this.deps;
    const wrong = headFault(request);
    if (wrong !== undefined) return refuseLast(request, visit.response, wrong, visit.requestId);
    if (!isOurHost(request.headers.host, entrance.rules))
      return refuseVisit(visit, misdirected(request.headers.host));
    const url = request.url!;
    const path = url.slice(0, pathEnd(url));
    const fault = targetFault(path);
    if (fault !== undefined) return refuseVisit(visit, notCanonical(path, fault));
    if (path.startsWith("/-")) return this.takeControl(visit, path);
    if (typeof this.standing === "object") return refuseVisit(visit, standsBy(this.standing));
    const endpoint = routes.endpoints.find(path);
    const isReached = endpoint?.address.is_public === true || this.isInternal(visit);
    if (endpoint === undefined || !isReached) return this.takeUnknown(visit, path);
    if (endpoint.kind !== "BatchAPI") return this.takePrediction(endpoint, visit);
    const { name, endpoint: at, needs_key } = endpoint.address;
    const pass = () => this.forward(visit, { path: `/${name}${url.slice(at.length)}`, endpoint: at });
    if (!needs_key) return pass();
    this.unlessRefused(visit, () => {
      if (authorization.isStranger(request)) refuseStranger(request, visit.response, visit.requestId);
      else pass();
    });
  }

  /** A wrong token or signature gets the same response at every address, so it is found before anything else. */
  private unlessRefused(visit: Visit, next: () => void): void {
    const { request, response, requestId } = visit;
    const decide = (fault: ServiceError | undefined) =>
      fault === undefined ? next() : refuseStranger(request, response, requestId, fault);
    const fault = this.deps.authorization.presentedFault(request);
    if (!(fault instanceof Promise)) return decide(fault);
    fault.then(decide).catch((error: unknown) => refuseVisit(visit, error));
  }

  private takePrediction(endpoint: PredictionEndpoint, visit: Visit): void {
    const { request, response, entrance, requestId } = visit;
    const { address } = endpoint;
    const { origin } = request.headers;
    const isAllowed =
      origin !== undefined && allowOrigin(origin, response, originsOf(address, entrance.rules));
    if (request.method === "OPTIONS")
      return answerOptions(request, response, {
        isAllowed,
        isListed: address.cors_origins !== null,
        requestId,
      });
    // If the address needs no key, any web page could send requests to it through its visitors' browsers.
    if (origin !== undefined && !isAllowed && !address.needs_key && this.isForeign(visit))
      return refuseVisit(visit, foreignOrigin(origin, address.name));
    // The browser adds a session by itself, so only this server's own pages may use it.
    if (origin !== undefined && this.deps.authorization.isOfSession(request) && this.isForeign(visit))
      return refuseVisit(visit, foreignOrigin(origin, undefined));
    const destination = destinationOf(endpoint, request);
    if (destination === undefined) return refuseVisit(visit, unknownAddress(address.endpoint));
    this.deps.predictions.take(destination, visit);
  }

  /**
   * Handles a path that this gateway does not know. The controller may have deployed the API a moment ago, or may still
   * know its jobs.
   */
  private takeUnknown(visit: Visit, path: string): void {
    const { endpoints } = this.deps.routes;
    const name = path.slice(1).split("/")[0]!;
    if (path === "/" && visit.entrance.hasControl && wantsPage(visit.request)) return this.toDashboard(visit);
    if (name === "") return refuseVisit(visit, unknownAddress(path));
    if (!endpoints.asksForKeys) {
      if (endpoints.knows(name) && endpoints.find(path) === undefined)
        return refuseVisit(visit, unknownAddress(path));
      return this.forward(visit);
    }
    this.unlessRefused(visit, () => this.askForUnknown(visit, name));
  }

  /** The prefix of a proxy that does not say it is only known to the browser, so then the address is relative. */
  private toDashboard({ request, response, requestId, entrance }: Visit): void {
    const prefix = this.deps.clients.prefix(request, entrance.name === "control");
    const location = prefix === "" ? "-/ui/" : `${prefix}/-/ui/`;
    response.writeHead(302, { location, vary: "Accept", "content-length": 0, "x-request-id": requestId });
    response.end();
  }

  /** Asks the controller, for a stranger only if it cannot learn anything from the response. */
  private askForUnknown(visit: Visit, name: string): void {
    const { request, response, requestId } = visit;
    const { routes, authorization } = this.deps;
    const isStranger = authorization.isStranger(request);
    const isRefused = request.method === "OPTIONS" || routes.endpoints.knows(name) || this.isForeign(visit);
    if (isStranger && (isRefused || !this.strangers.take(response)))
      return refuseStranger(request, response, requestId);
    const onNothing = isStranger ? () => refuseStranger(request, response, requestId) : undefined;
    this.forward(visit, { path: request.url!, onNothing });
  }

  private takeControl(visit: Visit, path: string): void {
    const { request, response, requestId, entrance } = visit;
    const { routes } = this.deps;
    const isProof = path === PROOF_PATH && entrance.hasControl;
    const isProbe = path === "/-/livez" || path === "/-/readyz" || isProof;
    if (isProbe && request.method !== "GET" && request.method !== "HEAD") {
      const message = `${request.method} is not allowed here; allowed: GET`;
      return refuseVisit(visit, new ServiceError("method_not_allowed", message, { allow: "GET" }));
    }
    if (path === "/-/livez") return sendText(response, 200, "ok\n", requestId);
    if (path === "/-/readyz") {
      const why = this.notReady;
      const isReady = why === undefined || (why === "standby" && isStandbyFine(request.url!));
      return sendText(response, isReady ? 200 : 503, `${why ?? "ok"}\n`, requestId);
    }
    if (typeof this.standing === "object" && !isProof) return refuseVisit(visit, standsBy(this.standing));
    if (isProof) answerProof(request, response, requestId, routes.adminTokenSha256);
    else if (entrance.hasControl) this.forward(visit);
    else refuseVisit(visit, unknownAddress(path));
  }

  /** Why load balancers should send no requests; undefined if they should. */
  private get notReady(): string | undefined {
    if (this.stopsSoon) return "stopping";
    if (typeof this.standing === "object") return "standby";
    return this.deps.routes.isReady && this.standing === "active" ? undefined : "starting";
  }

  private forward(visit: Visit, target?: Target): void {
    this.deps.controlPlane.take(visit, target);
  }

  private isInternal({ request, entrance }: Visit): boolean {
    return entrance.name === "control" || this.deps.clients.isLocal(request);
  }

  private isForeign({ request, entrance }: Visit): boolean {
    return isForeign(request, entrance.rules, this.deps.clients);
  }
}

/** `/-/readyz?standby=ok`, for those that count servers, and do not send requests. */
function isStandbyFine(url: string): boolean {
  return new URLSearchParams(url.slice(pathEnd(url))).get("standby") === "ok";
}

/** Whether a browser asks for a page to show. */
function wantsPage({ method, headers }: IncomingMessage): boolean {
  return (method === "GET" || method === "HEAD") && headers.accept?.includes("text/html") === true;
}

function refuseVisit({ request, response, requestId }: Visit, error: unknown): void {
  refuse(request, response, error, requestId);
}

function sendText(response: ServerResponse, status: number, text: string, requestId: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-request-id": requestId });
  response.end(text);
}
