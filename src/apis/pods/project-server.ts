/**
 * Gives pods the files of their version: `GET /-/projects/ID` over TLS, for the token of an API that has this project.
 * A listener of its own, because pods have neither a key nor a session, and shall reach nothing else.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { pipeline } from "node:stream/promises";
import { inBackground } from "../../base/boundary.ts";
import type { Service } from "../../base/service.ts";
import { PROJECT_REQUEST_MAX_MS } from "../../contracts/limits/kubernetes/pods.ts";
import type { Certified } from "../../kubernetes/certificates/certificate.ts";

export interface ProjectServerDeps {
  listen: { host: string; port: number };
  certificate: () => Certified;
  /** The APIs whose versions have this project. */
  apisOf: (projectId: string) => Promise<string[]>;
  isTokenOf: (apis: readonly string[], token: string) => boolean;
  /** The archive; undefined if its files are gone. */
  archive: (projectId: string) => Promise<NodeJS.ReadableStream | undefined>;
  onFailure: (error: Error) => void;
}

const PATH = /^\/-\/projects\/([0-9a-f]{24})$/;
const BEARER = /^Bearer (\S+)$/;

export class ProjectServer implements Service {
  private readonly deps: ProjectServerDeps;
  private server: Server | undefined;

  constructor(deps: ProjectServerDeps) {
    this.deps = deps;
  }

  async start(): Promise<void> {
    const { listen, certificate, onFailure } = this.deps;
    const server = createServer(
      { ...certificate(), minVersion: "TLSv1.3", requestTimeout: PROJECT_REQUEST_MAX_MS },
      (request, response) => inBackground(this.respond(request, response), onFailure),
    );
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(listen.port, listen.host, resolve);
    });
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.give(request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end();
      throw error;
    }
  }

  private async give(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const archive = await this.find(request);
    if (typeof archive === "number") {
      response.writeHead(archive).end();
      return;
    }
    response.writeHead(200, { "content-type": "application/gzip" });
    await pipeline(archive, response).catch((error: NodeJS.ErrnoException) => {
      // The pod has left.
      if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    });
  }

  /** The archive, or a status. 401 also for a project that nobody has: who has no token learns nothing. */
  private async find({
    method,
    url = "",
    headers,
  }: IncomingMessage): Promise<NodeJS.ReadableStream | number> {
    const [, id] = PATH.exec(url) ?? [];
    if (method !== "GET" || id === undefined) return 404;
    const [, token = ""] = BEARER.exec(headers.authorization ?? "") ?? [];
    if (!this.deps.isTokenOf(await this.deps.apisOf(id), token)) return 401;
    return (await this.deps.archive(id)) ?? 404;
  }
}
