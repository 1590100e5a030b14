/**
 * The sockets on which the gateways take connections. They are bound here, or by systemd, and accept in the
 * gateways, which inherit them (docs/decisions/0002-listening-socket.md).
 */
import net from "node:net";
import { formerApiPort } from "./api-port.ts";
import type { PassedFds } from "./passed-sockets.ts";

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
  getpeername(out: object): number;
  close(): void;
}

/** A socket that systemd has bound. */
interface PassedSocket {
  handle: SocketHandle;
  address: Address;
}

export interface PassedSockets {
  main: PassedSocket | undefined;
  control: PassedSocket | undefined;
}

/** The function behind the shared handles of node:cluster. No public function binds, or adopts, without accepting. */
type CreateHandle = (
  host: string | null,
  port: number | null,
  family: number | null,
  fd?: number,
) => SocketHandle | number;
const { _createServerHandle: createHandle } = net as unknown as { _createServerHandle: CreateHandle };

export interface ListeningSockets {
  /** The main socket, the one for user code, and the control plane's if it is separate. */
  handles: readonly SocketHandle[];
  /** The address of the main listener, such as http://0.0.0.0:8420, as messages and documents name it. */
  mainUrl: string;
  /** The address of the control plane, if it is separate. */
  controlUrl: string | undefined;
  /** The address at which commands on this machine reach the control plane. */
  localUrl: string;
  /** The port on loopback for calls from user code. */
  apiPort: number;
}

/** A passed socket takes the place of one that is bound. `listen` or `controlListen` then only names its address. */
export async function openListeningSockets(
  options: {
    listen: Address;
    controlListen: Address | undefined;
    tls: object | undefined;
    dataDir: string;
  },
  passed: PassedSockets,
): Promise<ListeningSockets> {
  const { listen, controlListen, dataDir } = options;
  const main = passed.main?.handle ?? (await bindSocket(listen));
  const inside = await bindInside(dataDir);
  const control = passed.control?.handle ?? (controlListen && (await bindSocket(controlListen)));
  const protocol = options.tls === undefined ? "http" : "https";
  const urlOf = ({ host, port }: Address, handle: SocketHandle) =>
    `${protocol}://${host.includes(":") ? `[${host}]` : host}:${port || portOf(handle)}`;
  const controlAt = passed.control?.address ?? controlListen;
  return {
    handles: control === undefined ? [main, inside] : [main, inside, control],
    mainUrl: urlOf(listen, main),
    controlUrl: control && urlOf(controlListen ?? passed.control!.address, control),
    localUrl: fromHere(
      control && controlAt ? urlOf(controlAt, control) : urlOf(passed.main?.address ?? listen, main),
    ),
    apiPort: portOf(inside),
  };
}

/** Takes the sockets that systemd has bound. Throws if one of them is no TCP socket that listens. */
export function takePassedSockets(fds: PassedFds): PassedSockets {
  const take = (fd: number | undefined) => (fd === undefined ? undefined : takePassed(fd));
  return { main: take(fds.main), control: take(fds.control) };
}

function takePassed(fd: number): PassedSocket {
  const handle = createHandle(null, null, null, fd);
  const name: { address?: string; port?: number } = {};
  // A pipe's handle has no names.
  const isTcp = typeof handle !== "number" && handle.getsockname?.(name) === 0;
  if (isTcp && handle.getpeername({}) !== 0)
    return { handle, address: { host: name.address!, port: name.port! } };
  throw new Error(
    `cannot listen on descriptor ${fd} of LISTEN_FDS: it is no TCP socket that listens; in the socket unit, set ListenStream=HOST:PORT, and leave out Accept=`,
  );
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
  // Nothing else keeps this process alive yet, so the timer must.
  const pause = () => new Promise((resolve) => setTimeout(resolve, BIND_RETRY_MS));
  for (const deadline = performance.now() + BIND_MS; ; await pause()) {
    const handle = createHandle(host, port, net.isIPv6(host) ? 6 : 4);
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
