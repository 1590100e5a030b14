/**
 * Calls from user code to other APIs (QUERN_API_URL): on a loopback listener without TLS, whose paths begin with a capability of the caller's
 * version (docs/decisions/0023-calls-from-user-code.md). They lead to APIs by their names, and never to the control plane.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { capabilityHash } from "../access/capabilities.ts";
import { type HostRules, isOurHost } from "../access/host-check.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { Forwarded } from "../contracts/forwarded.ts";
import type { Grant } from "../contracts/keys.ts";
import { foreignOrigin } from "./cors.ts";
import { destinationOf } from "./destination.ts";
import type { Endpoint } from "./endpoints.ts";
import { forward } from "./forward.ts";
import type { Predictions } from "./predictions.ts";
import { refuse } from "./refuse.ts";
import { targetFault } from "./request-target.ts";
import type { RouteTable } from "./route-table.ts";
import { misdirected, notCanonical, pathEnd, unknownAddress } from "./target-errors.ts";

const RULES: HostRules = { isLoopbackListener: true, publicHost: undefined };
/** Of all APIs. */
const OPENS: readonly Grant[] = [
  { scope: "predict", api: null },
  { scope: "submit", api: null },
];

export interface InsideDeps {
  routes: Pick<RouteTable, "capabilityOwner" | "endpoints">;
  predictions: Predictions;
  /** Of the listener. */
  port: number;
  controllerSocket: string;
  /** How clients outside reach this server, for addresses in answers: they may be passed on, so that no capability is in them. */
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
  /** What is under way, by the hash of the capability that let it in. */
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

  /** Cuts off what goes on under a capability that opens nothing any more. */
  endRevoked(): void {
    for (const [sha256, exchanges] of this.open)
      if (this.deps.routes.capabilityOwner(sha256) === undefined)
        for (const { response } of exchanges) response.destroy();
  }

  /** Predictions under way that workers of jobs have asked for: nobody waits for them when the server stops. */
  get ofJobs(): number {
    let count = 0;
    for (const exchanges of this.open.values())
      for (const { request, response, caller } of exchanges)
        if (request.complete && !response.writableEnded && !this.isReplica(caller)) count++;
    return count;
  }

  /** Throws what the request is refused with. */
  private enter(exchange: Exchange): void {
    const { request } = exchange;
    const { host, origin } = request.headers;
    const { capability, url } = split(request.url!);
    // From here on nothing can show it.
    request.url = url;
    if (!isOurHost(host, RULES)) throw misdirected(host);
    // Browsers send it with whatever a page has them do; programs do not.
    if (origin !== undefined) throw foreignOrigin(origin, undefined);
    const sha256 = capabilityHash(this.deps.port, capability);
    const caller = this.deps.routes.capabilityOwner(sha256);
    if (caller === undefined) throw unknownCapability();
    const path = url.slice(0, pathEnd(url));
    const fault = targetFault(path);
    if (fault !== undefined) throw notCanonical(path, fault);
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

  /** The API that a path names, and what is behind its name. That of an application is `<application>/<api>`. */
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
    const { controllerSocket, baseUrl } = this.deps;
    const query = request.url!.slice(pathEnd(request.url!));
    const forwarded: Forwarded = {
      baseUrl,
      listener: "inside",
      client: request.socket.remoteAddress,
      isLocal: true,
      holder: { id: `api:${caller}`, grants: OPENS, rate: null },
      endpoint: address.endpoint,
    };
    const path = `/${address.name}${rest}${query}`;
    forward(request, response, { controllerSocket, requestId, forwarded, path }).catch((error: unknown) =>
      refuse(request, response, error, requestId),
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
    "the address does not begin with a QUERN_API_URL that opens anything: append /<name of the API> to the variable as it is, " +
      "and read it from the environment each time, because it ends with the last worker of the version that has it",
  );
}
