/**
 * The socket of a connection to a worker: a Unix socket, TCP on loopback, or TLS 1.3. It reads into the memory of a
 * `FrameReader`.
 */
import { createConnection, type NetConnectOpts, type Socket } from "node:net";
import { type ConnectionOptions, connect, createSecureContext, type SecureContext } from "node:tls";
import type { ReplicaRoute } from "../contracts/routes.ts";
import { asProtocolError } from "./frame-rules.ts";
import type { FrameReader } from "./frames.ts";
import { HANDSHAKE_MS } from "./handshake.ts";

export interface TlsAddress {
  host: string;
  port: number;
  /** `ca`: the certificates, in PEM, of which one must have issued the worker's. */
  tls: { ca: string };
  /** The name that the worker's certificate must have. The host of a pod is an address, and changes. */
  serverName: string;
}

export type WorkerAddress = { path: string } | { host: string; port: number } | TlsAddress;

/** Keep-alive detects a TCP peer that is gone. The peer's kernel replies to it, however busy the process is. */
const KEEP_ALIVE_FIRST_MS = 5_000;
/** An installation has one or two certificates that issue others: the second while the first is replaced. */
const CONTEXTS_MAX = 8;
const LOOPBACK = /^(127\.|::1$|localhost$)/;

const contexts = new Map<string, SecureContext>();

/** The address in a route: a Unix socket of this machine, or a worker in a pod. */
export function workerAddress({ socket, address }: Pick<ReplicaRoute, "socket" | "address">): WorkerAddress {
  if (address === undefined) return { path: socket };
  const { host, port, server_name: serverName, ca } = address;
  return { host, port, serverName, tls: { ca } };
}

/** Bytes that are not frames end the socket. Throws for TCP to another machine, because it is not encrypted. */
export function connectSocket(address: WorkerAddress, reader: FrameReader): Socket {
  const onread = {
    buffer: () => reader.space(),
    callback: (bytes: number) => {
      try {
        if (!reader.filled(bytes)) return true;
      } catch (error) {
        socket.destroy(asProtocolError(error));
        return true;
      }
      setImmediate(() => socket.resume());
      return false;
    },
  };
  const socket: Socket = "tls" in address ? secured(address, onread) : plain(address, onread);
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_FIRST_MS);
}

/** Resolves once the worker has proved who it is. Rejects if it cannot, or if it does not respond. */
export function isSecure(socket: Socket, timeoutMs = HANDSHAKE_MS): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`the worker did not respond within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const onClose = () => reject(new Error("the worker closed the connection during the TLS handshake"));
    socket.once("secureConnect", () => {
      socket.off("close", onClose).off("error", reject);
      clearTimeout(timer);
      resolve();
    });
    socket.on("close", onClose).on("error", reject);
    socket.on("close", () => clearTimeout(timer));
  });
}

function plain(address: { path: string } | { host: string; port: number }, onread: OnRead): Socket {
  if ("host" in address && !LOOPBACK.test(address.host))
    throw new Error(`a worker at ${address.host} needs TLS: only loopback may be without`);
  return createConnection({ ...address, onread } as NetConnectOpts);
}

/** The types of `tls.connect` lack `onread`, which it hands to the socket as `net.connect` does. */
function secured({ host, port, tls, serverName }: TlsAddress, onread: OnRead): Socket {
  const options: ConnectionOptions = { host, port, servername: serverName, secureContext: contextOf(tls.ca) };
  return connect({ ...options, minVersion: "TLSv1.3", onread } as ConnectionOptions);
}

type OnRead = NonNullable<NetConnectOpts["onread"]>;

/** Reading the certificates takes a millisecond, and a gateway has many workers. */
function contextOf(ca: string): SecureContext {
  const known = contexts.get(ca);
  if (known !== undefined) return known;
  const [oldest] = contexts.keys();
  if (contexts.size >= CONTEXTS_MAX && oldest !== undefined) contexts.delete(oldest);
  const context = createSecureContext({ ca, minVersion: "TLSv1.3" });
  contexts.set(ca, context);
  return context;
}
