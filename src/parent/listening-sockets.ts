/**
 * The sockets on which the gateways take connections. They are bound here and accept in the gateways, which inherit
 * them (docs/decisions/0002-listening-socket.md).
 */
import net from "node:net";
import { formerApiPort } from "./api-port.ts";

/** An address and not a name, because a name may resolve to another machine's address. */
const LOOPBACK = "127.0.0.1";
/** The index of the listener for user code, between the main socket and the control plane's. */
export const INSIDE = 1;
const BIND_RETRY_MS = 20;
const BIND_MS = 2_000;

interface Address {
  host: string;
  port: number;
}

interface SocketHandle {
  fd: number;
  /** Returns 0, or the error's number. */
  getsockname(out: { address?: string; port?: number }): number;
  close(): void;
}

export interface ListeningSockets {
  /** The main socket, the one for user code, and the control plane's if it is separate. */
  handles: readonly SocketHandle[];
  /** The address of the main listener, such as http://0.0.0.0:8420. */
  mainUrl: string;
  /** The address of the control plane, if it is separate. */
  controlUrl: string | undefined;
  /** The port on loopback for calls from user code. */
  apiPort: number;
}

export async function openListeningSockets(options: {
  listen: Address;
  controlListen: Address | undefined;
  tls: object | undefined;
  dataDir: string;
}): Promise<ListeningSockets> {
  const { listen, controlListen, dataDir } = options;
  const main = await bindSocket(listen);
  const inside = await bindInside(dataDir);
  const control = controlListen === undefined ? undefined : await bindSocket(controlListen);
  const protocol = options.tls === undefined ? "http" : "https";
  const urlOf = (handle: SocketHandle, { host }: Address) =>
    `${protocol}://${host.includes(":") ? `[${host}]` : host}:${portOf(handle)}`;
  return {
    handles: control === undefined ? [main, inside] : [main, inside, control],
    mainUrl: urlOf(main, listen),
    controlUrl: control && controlListen && urlOf(control, controlListen),
    apiPort: portOf(inside),
  };
}

/** The address that a program on this machine uses. */
export function fromHere(url: string): string {
  return url.replace("//0.0.0.0:", `//${LOOPBACK}:`).replace("//[::]:", "//[::1]:");
}

/** Binds the listener for calls of user code: to the former port, or to another one if that is in use. */
async function bindInside(dataDir: string): Promise<SocketHandle> {
  const bind = (port: number) => bindSocket({ host: LOOPBACK, port });
  return bind(formerApiPort(dataDir)).catch(() => bind(0));
}

/**
 * Binds a socket that does not accept here: only the gateways, which inherit it, accept. If the address is in use, it
 * retries for a moment, because the gateway of a killed parent may be about to end.
 */
async function bindSocket({ host, port }: Address): Promise<SocketHandle> {
  // The function behind the shared handles of node:cluster. No public function binds without accepting.
  const { _createServerHandle } = net as unknown as {
    _createServerHandle: (host: string, port: number, family: number) => SocketHandle | number;
  };
  // Nothing else keeps this process alive yet, so the timer must.
  const pause = () => new Promise((resolve) => setTimeout(resolve, BIND_RETRY_MS));
  for (const deadline = performance.now() + BIND_MS; ; await pause()) {
    const handle = _createServerHandle(host, port, net.isIPv6(host) ? 6 : 4);
    // getsockname reports an address in use, because libuv delays the error of the bind.
    if (typeof handle !== "number") {
      if (handle.getsockname({}) === 0) return handle;
      handle.close();
    }
    if (performance.now() > deadline) {
      throw new Error(
        `cannot listen on ${host}:${port}: it is in use or not allowed; choose another with --listen HOST:PORT (port 0 is any free one)`,
      );
    }
  }
}

function portOf(handle: SocketHandle): number {
  const name: { port?: number } = {};
  handle.getsockname(name);
  return name.port!;
}
