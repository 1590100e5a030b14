/**
 * Calls from user code to other APIs (QUERN_API_URL). They come to a loopback listener without TLS, and their paths
 * begin with a capability of the caller's version (docs/decisions/0023-calls-from-user-code.md). They reach APIs by
 * name, and never the control plane.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyBudget } from "../access/body-budget.ts";
import { capabilityHash } from "../access/capabilities.ts";
import { type HostRules, isOurHost } from "../access/host-check.ts";
import { addressOwner } from "../base/fair/address-owner.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Forwarded } from "../contracts/forwarded.ts";
import type { Permission } from "../contracts/keys.ts";
import { refuse, refuseLast } from "./answers/refuse.ts";
import { setOwner } from "./connections/owners.ts";
import type { ControllerConnections } from "./controller-connections.ts";
import { destinationOf } from "./destination.ts";
import { foreignOrigin } from "./door/cors.ts";
import { headFault } from "./door/head-fault.ts";
import { targetFault } from "./door/request-target.ts";
import { forward } from "./forward.ts";
import type { Predictions } from "./predictions.ts";
import type { Endpoint } from "./replicas/endpoints.ts";
import type { RouteTable } from "./replicas/route-table.ts";
import { misdirected, notCanonical, pathEnd, unknownAddress } from "./target-errors.ts";

const RULES: HostRules = { isLoopbackListener: true, publicHost: undefined };
/** A capability opens all APIs. */
const OPENS: readonly Permission[] = [
  { scope: "predict", api: null },
  { scope: "submit", api: null },
];

export interface InsideDeps {
  routes: Pick<RouteTable, "capabilityOwner" | "endpoints">;
  predictions: Predictions;
  /** The listener's port. */
  port: number;
  controller: ControllerConnections;
  bodies: BodyBudget;
  /**
   * The server's address for clients outside, used for addresses in responses. User code may pass these on, so they
   * must not contain a capability.
   */
  baseUrl: string;
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
}

interface OpenExchange extends Exchange {
  /** The API whose worker has called. */
  caller: string;
}

export class Inside {
  private readonly deps: InsideDeps;
  /** Requests under way, by the hash of the capability that admitted each. */
  private readonly open = new Map<string, Set<OpenExchange>>();

  constructor(deps: InsideDeps) {
    this.deps = deps;
  }

  take(exchange: Exchange): void {
    const { request, response, requestId } = exchange;
    try {
      this.enter(exchange);
    } catch (error) {
      refuse(request, response, error, requestId);
    }
  }

  /** Cuts off requests whose capability is no longer valid. */
  endRevoked(): void {
    for (const [sha256, exchanges] of this.open)
      if (this.deps.routes.capabilityOwner(sha256) === undefined)
        for (const { response } of exchanges) response.destroy();
  }

  /**
   * How many predictions under way were requested by workers of jobs. When the server stops, its main listener does not
   * wait for them.
   */
  get ofJobs(): number {
    let count = 0;
    for (const exchanges of this.open.values())
      for (const { request, response, caller } of exchanges)
        if (request.complete && !response.writableEnded && !this.isReplica(caller)) count++;
    return count;
  }

  /** Throws the error with which the request is refused. */
  private enter(exchange: Exchange): void {
    const { request } = exchange;
    const { host, origin } = request.headers;
    const { capability, url } = split(request.url!);
    // From here on no other code can see the capability.
    request.url = url;
    const wrong = headFault(request);
    if (wrong !== undefined) return refuseLast(request, exchange.response, wrong, exchange.requestId);
    if (!isOurHost(host, RULES)) throw misdirected(host);
    // A request with an Origin header comes from a web page. Programs do not send the header.
    if (origin !== undefined) throw foreignOrigin(origin, undefined);
    const sha256 = capabilityHash(this.deps.port, capability);
    const caller = this.deps.routes.capabilityOwner(sha256);
    if (caller === undefined) throw unknownCapability();
    const path = url.slice(0, pathEnd(url));
    const fault = targetFault(path);
    if (fault !== undefined) throw notCanonical(path, fault);
    setOwner(request.socket, `api:${caller}`);
    this.keep(sha256, { ...exchange, caller });
    this.route(exchange, path, caller);
  }

  private isReplica(caller: string): boolean {
    return this.deps.routes.endpoints.named(caller)?.kind === "RealtimeAPI";
  }

  private route(exchange: Exchange, path: string, caller: string): void {
    const { request } = exchange;
    const { endpoint, rest } = this.find(path);
    if (endpoint.kind === "BatchAPI") return this.forward(exchange, endpoint, rest, caller);
    const destination = rest === "" || rest === "/" ? destinationOf(endpoint, request) : undefined;
    if (destination === undefined) throw unknownAddress(path);
    this.deps.predictions.take(destination, exchange);
  }

  /** The API that a path names, and the rest of the path. An application's API is named `<application>/<api>`. */
  private find(path: string): { endpoint: Endpoint; rest: string } {
    const [, name = "", below = ""] = path.split("/", 3);
    for (const [known, segments] of [
      [name, name],
      [`${name}.${below}`, `${name}/${below}`],
    ] as const) {
      const endpoint = this.deps.routes.endpoints.named(known);
      if (endpoint !== undefined) return { endpoint, rest: path.slice(1 + segments.length) };
    }
    throw new ServiceError("api_not_found", `${name} is not deployed; \`quern get\` shows what is`);
  }

  /** The controller knows a batch API by its name. */
  private forward(exchange: Exchange, { address }: Endpoint, rest: string, caller: string): void {
    const { request, response, requestId } = exchange;
    const { controller, bodies, baseUrl } = this.deps;
    const sender = { name: `api:${caller}`, isStranger: false };
    const query = request.url!.slice(pathEnd(request.url!));
    const forwarded: Forwarded = {
      baseUrl,
      listener: "inside",
      client: addressOwner(request.socket.remoteAddress),
      isLocal: true,
      principal: { id: sender.name, permissions: OPENS, rate: null },
      endpoint: address.endpoint,
    };
    const path = `/${address.name}${rest}${query}`;
    forward(request, response, { controller, bodies, sender, requestId, forwarded, path }).catch(
      (error: unknown) => refuse(request, response, error, requestId),
    );
  }

  private keep(sha256: string, exchange: OpenExchange): void {
    const exchanges = this.open.get(sha256) ?? new Set();
    this.open.set(sha256, exchanges.add(exchange));
    exchange.response.once("close", () => {
      exchanges.delete(exchange);
      if (exchanges.size === 0) this.open.delete(sha256);
    });
  }
}

/** A URL's first segment, and the URL without it. */
function split(url: string): { capability: string; url: string } {
  const [, capability = "", rest = ""] = /^\/([^/?]*)(.*)$/s.exec(url) ?? [];
  return { capability, url: rest.startsWith("/") ? rest : `/${rest}` };
}

function unknownCapability(): ServiceError {
  return new ServiceError(
    "unauthorized",
    "the address does not begin with a valid QUERN_API_URL: append /<name of the API> to the variable as it is, " +
      "and read it from the environment each time, because it expires with the last worker of its version",
  );
}
