/**
 * The messages between the fuzzer and a process that runs inputs, over one socket: `u32 length | bytes`. A request is a
 * letter and an input; an answer is JSON.
 */
import type { Socket } from "node:net";

export const RUN = 0x72;
/** Asks whether code ran for the first time since the last check. With KEEP it counts as known from now on. */
export const LOOK = 0x6c;
export const KEEP = 0x6b;

export interface Answer {
  /** A failure: an error's text with its stack, or the broken rule. */
  finding?: string;
  /** New code was reached. Missing if that is not known yet: LOOK asks. */
  fresh?: boolean;
  claim?: unknown;
}

export function writeMessage(socket: Socket, ...parts: readonly Buffer[]): void {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0));
  socket.write(Buffer.concat([head, ...parts]));
}

/** Calls `onMessage` for each that comes. */
export function readMessages(socket: Socket, onMessage: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE(0)) {
      const end = 4 + rest.readUInt32LE(0);
      onMessage(Buffer.from(rest.subarray(4, end)));
      rest = rest.subarray(end);
    }
  });
}
