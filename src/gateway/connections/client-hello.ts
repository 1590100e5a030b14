/** Reads a new connection until its ClientHello is complete (RFC 8446, sections 4 and 5.1), which TLS answers with a signature. */
import type { Socket } from "node:net";
import { CLIENT_HELLO_BYTES_MAX, CLIENT_HELLO_PARTS_MAX } from "../../contracts/limits/requests.ts";

/** Of a record: type, version, length. */
const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
/** Of a handshake message: type, length. */
const MESSAGE_HEADER_BYTES = 4;

/**
 * Calls `next` once the ClientHello is there, unread. A connection that ends before is closed, and so is one that sends
 * too much, or in too many parts.
 */
export function whenHelloIsWhole(socket: Socket, next: () => void): void {
  const parts: Buffer[] = [];
  let bytes = 0;
  const close = () => socket.destroy();
  const onReadable = () => {
    for (let part = socket.read() as Buffer | null; part !== null; part = socket.read() as Buffer | null) {
      parts.push(part);
      bytes += part.length;
    }
    if (bytes > CLIENT_HELLO_BYTES_MAX || parts.length > CLIENT_HELLO_PARTS_MAX) return close();
    const sent = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    if (bytes === 0 || !isHelloWhole(sent)) return;
    socket.off("readable", onReadable).off("end", close);
    socket.unshift(sent);
    next();
  };
  // Its end is its "close".
  socket.on("error", () => {});
  socket.on("end", close).on("readable", onReadable);
}

/** True also for anything that is no handshake: TLS refuses it without a signature. */
export function isHelloWhole(sent: Buffer): boolean {
  let payload = 0;
  /** The length of the message has three bytes, which may lie in several records. */
  const header: number[] = [];
  for (let at = 0; at < sent.length; ) {
    if (sent[at] !== HANDSHAKE_RECORD) return true;
    if (sent.length < at + RECORD_HEADER_BYTES) return false;
    const begin = at + RECORD_HEADER_BYTES;
    const bytes = sent.readUInt16BE(at + 3);
    if (bytes === 0) return true;
    for (let byte = begin; byte < begin + bytes && header.length < MESSAGE_HEADER_BYTES; byte++)
      if (byte < sent.length) header.push(sent[byte]!);
    at = begin + bytes;
    if (at > sent.length) return false;
    payload += bytes;
    if (header.length === MESSAGE_HEADER_BYTES && payload >= MESSAGE_HEADER_BYTES + lengthIn(header))
      return true;
  }
  return false;
}

function lengthIn([, high, middle, low]: readonly number[]): number {
  return (high! << 16) | (middle! << 8) | low!;
}
