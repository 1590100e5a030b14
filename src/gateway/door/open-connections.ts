/**
 * Bounds the open connections of one listener. Beyond the bound, a new connection closes one that is idle: it has no
 * request in progress, and was unused for about the longest time. If all have requests in progress, the new one is
 * closed. Requests cost nothing here: only a new connection beyond the bound looks at others.
 */
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { CONNECTIONS_LOOKED_AT_MAX, CONNECTIONS_MAX } from "../../contracts/limits/requests.ts";
import type { ConnectionUse } from "./asked-at-once.ts";

export class OpenConnections {
  private readonly most: number;
  private readonly use: (socket: Socket) => ConnectionUse;
  /** Those that were longest not looked at come first. */
  private readonly open = new Set<Socket>();

  constructor(most: number, use: (socket: Socket) => ConnectionUse) {
    this.most = most;
    this.use = use;
  }

  add(socket: Socket): void {
    if (this.open.size >= this.most && !this.closeIdle()) {
      socket.destroy();
      return;
    }
    this.open.add(socket);
    socket.once("close", () => this.open.delete(socket));
  }

  /** Looks at some connections, and puts them behind the others. False if all of these have requests in progress. */
  private closeIdle(): boolean {
    let used: Socket | undefined;
    let looks = Math.min(this.open.size, CONNECTIONS_LOOKED_AT_MAX);
    for (const socket of this.open) {
      if (looks-- === 0) break;
      const use = this.use(socket);
      if (use === "idle") return this.close(socket);
      if (use === "used") used ??= socket;
      this.open.delete(socket);
      this.open.add(socket);
    }
    return used !== undefined && this.close(used);
  }

  /** Forgets it at once: it closes a turn later, and many connections come in one turn. */
  private close(socket: Socket): true {
    this.open.delete(socket);
    socket.destroy();
    return true;
  }
}

/** Half of the files that this process may open: the others are for workers, the controller and log files. */
export function connectionsMax(): number {
  return Math.min(CONNECTIONS_MAX, Math.floor(openFilesMax() / 2));
}

/** Infinite where the system does not say it in a file: macOS. Node has already raised the soft limit to the hard one. */
function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
