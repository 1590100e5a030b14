/** Serves the controller's HTTP to the gateways of this machine, on a Unix socket. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { dirname } from "node:path";
import { JoinedRequest } from "../access/joined-request.ts";
import type { Service } from "../base/service.ts";
import { CONTROLLER_HEAD_BYTES_MAX } from "../contracts/limits/requests.ts";

export class ControlServer implements Service {
  private readonly socket: string;
  private readonly listener: RequestListener;
  /** The last one listens. Earlier ones still have connections. */
  private servers: Server[] = [];

  constructor(socket: string, listener: RequestListener) {
    this.socket = socket;
    this.listener = listener;
  }

  async start(): Promise<void> {
    mkdirSync(dirname(this.socket), { recursive: true, mode: 0o700 });
    rmSync(this.socket, { force: true });
    const server = createServer(
      { requestTimeout: 0, maxHeaderSize: CONTROLLER_HEAD_BYTES_MAX, IncomingMessage: JoinedRequest },
      this.listener,
    );
    // The code that reads the body sends the "continue".
    server.on("checkContinue", this.listener);
    this.servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(this.socket, resolve);
    });
  }

  /** Listens again if somebody has removed the socket, such as a cleaner of temporary files. Returns true if it did. */
  async mend(): Promise<boolean> {
    if (existsSync(this.socket)) return false;
    const former = this.servers.at(-1);
    // The former server is closed first, because that removes the file. Requests on its connections continue.
    former?.close(() => {
      this.servers = this.servers.filter((server) => server !== former);
    });
    await this.start();
    return true;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.servers.map(
        (server) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
            server.closeAllConnections();
          }),
      ),
    );
  }
}
