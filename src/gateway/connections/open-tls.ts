/** Begins TLS on a connection. Node's own server does the same, but shows its TLS socket only after the handshake. */
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";

/** Undocumented, and the same from Node 20 to 24. */
interface ServerSocket extends TLSSocket {
  /** Until this is called, Node keeps the errors of the socket to itself. */
  _releaseControl?: () => boolean;
}

/** `onSecure` is called when the handshake is over. If it fails, both sockets close. */
export function openTls(
  connection: Socket,
  secureContext: SecureContext,
  onSecure: (socket: TLSSocket) => void,
): TLSSocket {
  const socket: ServerSocket = new TLSSocket(connection, {
    isServer: true,
    secureContext,
    ALPNProtocols: ["http/1.1"],
  });
  return socket.once("secure", () => {
    if (socket.destroyed) return;
    socket._releaseControl?.();
    onSecure(socket);
  });
}
