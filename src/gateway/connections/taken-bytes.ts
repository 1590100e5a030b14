/** How much of what was written the client has taken. */
import type { Socket } from "node:net";

/** Node's view of a socket of the system. It is undocumented, and the same from Node 20 to 24. */
interface Handle {
  bytesWritten: number;
  writeQueueSize: number;
}

interface HandledSocket extends Socket {
  /** Under TLS, the parent has the encrypted bytes. */
  _handle?: (Handle & { _parent?: Handle }) | null;
}

/**
 * Bytes of the connection that the system has taken so far. `writableLength` does not tell this: a large buffer counts
 * there until its last byte is taken.
 */
export function takenBytes(socket: HandledSocket): number {
  const handle = socket._handle?._parent ?? socket._handle;
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}
