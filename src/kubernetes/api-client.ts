/**
 * Requests to a cluster's API server. Every request has a deadline for silence. It does not retry, except once with
 * renewed credentials: its callers know what a retry means.
 */
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import {
  CLUSTER_RESPONSE_BYTES_MAX,
  CLUSTER_SILENT_MAX_MS,
} from "../contracts/limits/kubernetes/api-server.ts";
import { ApiError, apiError } from "./api-error.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";
import { WatchLines } from "./watch-lines.ts";

/** Who owns the fields that Quern applies. Fields and labels of others stay. */
const FIELD_MANAGER = "quern";
const CONNECTIONS_MAX = 8;

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface RequestLimits {
  signal?: AbortSignal;
  /** How long the API server may be silent, before the response and within it. The default is CLUSTER_SILENT_MAX_MS. */
  silentMaxMs?: number;
}

interface Asked extends RequestLimits {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  body?: object;
  contentType?: string;
}

export class ApiClient {
  private readonly access: ClusterAccess;
  private readonly agent: Agent;
  private readonly confirmOwner: () => Promise<void>;

  /**
   * `confirmOwner` is waited for last before each change: it rejects if this server has lost its database to another one,
   * which changes the same objects (docs/decisions/0038-servers-of-a-cluster.md).
   */
  constructor(access: ClusterAccess, confirmOwner: () => Promise<void> = async () => {}) {
    this.access = access;
    this.confirmOwner = confirmOwner;
    const { ca, serverName } = access;
    const options = {
      keepAlive: true,
      maxSockets: CONNECTIONS_MAX,
      ...(ca === undefined ? {} : { ca }),
      ...(serverName === undefined ? {} : { servername: serverName }),
    };
    this.agent = access.server.startsWith("http:") ? (new PlainAgent(options) as Agent) : new Agent(options);
  }

  get<T>(path: string, query: Query = {}, limits: RequestLimits = {}): Promise<T> {
    return this.json<T>({ method: "GET", path, query, ...limits });
  }

  create<T>(path: string, body: object): Promise<T> {
    return this.json<T>({ method: "POST", path, body });
  }

  /**
   * Makes an object be so, as far as `object` says (server-side apply). Throws if a field does not exist. `isTrial`:
   * the API server only checks it. `part`: who owns these fields; other parts stay as they are.
   */
  apply<T>(
    path: string,
    object: object,
    { isTrial = false, part }: { isTrial?: boolean; part?: string } = {},
  ): Promise<T> {
    const query = {
      fieldManager: part === undefined ? FIELD_MANAGER : `${FIELD_MANAGER}-${part}`,
      force: "true",
      fieldValidation: "Strict",
      dryRun: isTrial ? "All" : undefined,
    };
    const contentType = "application/apply-patch+yaml";
    return this.json<T>({ method: "PATCH", path, query, body: object, contentType });
  }

  /** Changes some fields of an object, and removes those that are null (JSON merge patch). */
  merge<T>(path: string, change: object): Promise<T> {
    const contentType = "application/merge-patch+json";
    return this.json<T>({ method: "PATCH", path, body: change, contentType });
  }

  /**
   * Removes an object and what belongs to it; it may be gone already. `uid`: only if it still is this one. A pod has
   * `graceSeconds` to end, instead of its own time.
   */
  async remove(path: string, uid?: string, graceSeconds?: number): Promise<void> {
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    const body = {
      kind: "DeleteOptions",
      apiVersion: "v1",
      propagationPolicy: "Background",
      ...preconditions,
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
    };
    await this.json({ method: "DELETE", path, body }).catch((error: unknown) => {
      const isGone = error instanceof ApiError && (error.status === 404 || error.reason === "Conflict");
      if (!isGone) throw error;
    });
  }

  /**
   * Calls `onEvent` for each event of a watch. Resolves when the API server ends it. Rejects if it fails, or is silent
   * for `silentMaxMs`.
   */
  async watch(
    path: string,
    query: Query,
    onEvent: (event: unknown) => void,
    limits: RequestLimits,
  ): Promise<void> {
    const response = await this.open({
      method: "GET",
      path,
      query: { ...query, watch: "1" },
      ...limits,
    });
    const lines = new WatchLines(onEvent);
    for await (const bytes of response) lines.add(bytes as Buffer);
    lines.end();
  }

  /** Ends idle connections. */
  close(): void {
    this.agent.destroy();
  }

  private async json<T>(asked: Asked): Promise<T> {
    return JSON.parse(await textOf(await this.open(asked))) as T;
  }

  private async open(asked: Asked): Promise<IncomingMessage> {
    const response = await this.send(asked, await this.permit(asked, false));
    if (response.statusCode !== 401) return successOf(response);
    response.resume();
    return successOf(await this.send(asked, await this.permit(asked, true)));
  }

  /** The owner is confirmed last, because credentials may take long. */
  private async permit({ method }: Asked, isRenewed: boolean): Promise<Credentials> {
    const credentials = await this.access.credentials(isRenewed);
    if (method !== "GET") await this.confirmOwner();
    return credentials;
  }

  private send(asked: Asked, { token, cert, key }: Credentials): Promise<IncomingMessage> {
    const { method, path, query = {}, signal, silentMaxMs = CLUSTER_SILENT_MAX_MS } = asked;
    const url = new URL(this.access.server.replace(/\/+$/, "") + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
    const headers = {
      accept: "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      // Node sends none by itself with a DELETE, and the next request would begin with this body.
      ...(body === undefined
        ? {}
        : {
            "content-type": asked.contentType ?? "application/json",
            "content-length": Buffer.byteLength(body),
          }),
    };
    const options = {
      method,
      headers,
      agent: this.agent,
      signal,
      ...(cert === undefined ? {} : { cert, key }),
    };
    return new Promise((resolve, reject) => {
      let stream: { destroy(error: Error): unknown };
      const sent = (url.protocol === "http:" ? plainRequest : request)(url, options, (response) => {
        stream = response;
        resolve(response);
      });
      stream = sent;
      sent.on("error", reject);
      // Its timer counts any silence, also within the response.
      sent.setTimeout(silentMaxMs, () =>
        stream.destroy(new Error(`the API server was silent for ${silentMaxMs} ms`)),
      );
      sent.end(body);
    });
  }
}

async function successOf(response: IncomingMessage): Promise<IncomingMessage> {
  const { statusCode = 0, headers } = response;
  if (statusCode >= 200 && statusCode < 300) return response;
  throw apiError(statusCode, await textOf(response), headers["retry-after"]);
}

async function textOf(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response) {
    bytes += (part as Buffer).length;
    if (bytes > CLUSTER_RESPONSE_BYTES_MAX)
      throw new Error(`a response of the API server is longer than ${CLUSTER_RESPONSE_BYTES_MAX} bytes`);
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString();
}
