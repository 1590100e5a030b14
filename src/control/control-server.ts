/** Serves the controller's HTTP on a Unix socket, to the gateways of this machine. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { dirname } from "node:path";
import type { Service } from "../base/service.ts";
import { CONTROLLER_HEAD_BYTES_MAX } from "../contracts/limits.ts";

export class ControlServer implements Service {
  private readonly socket: string;
  private readonly listener: RequestListener;
  /** The last one listens; those before it have connections still. */
  private servers: Server[] = [];

  constructor(socket: string, listener: RequestListener) {
    this.socket = socket;
    this.listener = listener;
  }

  async start(): Promise<void> {
    mkdirSync(dirname(this.socket), { recursive: true, mode: 0o700 });
    rmSync(this.socket, { force: true });
    const server = createServer(
      { requestTimeout: 0, maxHeaderSize: CONTROLLER_HEAD_BYTES_MAX },
      this.listener,
    );
    // Whoever reads the body says that it may come.
    server.on("checkContinue", this.listener);
    this.servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(this.socket, resolve);
    });
  }

  /** Listens anew where somebody has removed the socket: whatever cleans temporary files. True when it had to. */
  async mend(): Promise<boolean> {
    if (existsSync(this.socket)) return false;
    const former = this.servers.at(-1);
    // Closed first, because that removes the file. Requests on its connections go on.
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
