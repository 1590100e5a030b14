/** Serves the controller's HTTP on a Unix socket, to the gateways of this machine. */
import { rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { Service } from "../base/service.ts";

export class ControlServer implements Service {
  private readonly socket: string;
  private readonly server: ReturnType<typeof createServer>;

  constructor(socket: string, listener: RequestListener) {
    this.socket = socket;
    this.server = createServer({ requestTimeout: 0 }, listener);
  }

  async start(): Promise<void> {
    rmSync(this.socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject).listen(this.socket, resolve);
    });
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }
}
