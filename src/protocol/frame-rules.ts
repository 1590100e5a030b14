/**
 * What must always hold of a frame, and is checked on this side of each connection to a worker. The worker checks its side
 * (python/quern_runtime/protocol.py). Whoever breaks a rule is broken: nothing that it says after that is believed.
 */
import { FLAG_MORE } from "./frames.ts";
import { MESSAGE } from "./messages.ts";

/** The other side, or this one, has broken a rule of the protocol: the connection is of no use any more. */
export class ProtocolError extends Error {}

/** Every other message is one frame, so that messages keep their order by construction. */
const MAY_BE_LONG = new Set<number>([
  MESSAGE.INIT,
  MESSAGE.PREDICT,
  MESSAGE.LEASE,
  MESSAGE.RESULT,
  MESSAGE.CHUNK,
]);
const WITHOUT_ID = new Set<number>([
  MESSAGE.WELCOME,
  MESSAGE.READY,
  MESSAGE.INIT_FAILED,
  MESSAGE.REFUSED,
  // Room for INIT, which has none.
  MESSAGE.WINDOW,
]);
/** Least and most bytes of a body, where they are fixed. */
const BODY_BYTES: Readonly<Record<number, readonly [number, number]>> = {
  [MESSAGE.WINDOW]: [4, 4],
  [MESSAGE.BUSY]: [0, 0],
  [MESSAGE.START]: [0, 0],
  [MESSAGE.ACK]: [16, Number.POSITIVE_INFINITY],
  [MESSAGE.RELEASE]: [4, 4],
  [MESSAGE.END]: [0, 0],
};

interface Rule {
  mayBeLong: boolean;
  isWithoutId: boolean;
  least: number;
  most: number;
}

/** By type; undefined for what no worker sends behind its WELCOME. */
const FROM_WORKER: readonly (Rule | undefined)[] = Array.from({ length: 256 }, (_, type) => {
  const isTheirs = type === MESSAGE.WINDOW || (type > MESSAGE.WELCOME && type <= MESSAGE.END);
  const [least, most] = BODY_BYTES[type] ?? [0, Number.POSITIVE_INFINITY];
  return isTheirs
    ? { mayBeLong: MAY_BE_LONG.has(type), isWithoutId: WITHOUT_ID.has(type), least, most }
    : undefined;
});

/** Throws for a frame that no worker sends. */
export function checkFrame(type: number, flags: number, id: number, bytes: number): void {
  const rule = FROM_WORKER[type];
  if (rule === undefined) throw new ProtocolError(`a message of type ${type} is none that a worker sends`);
  if (flags !== 0 && (flags !== FLAG_MORE || !rule.mayBeLong))
    throw new ProtocolError(`a message of type ${type} cannot have the flags ${flags}`);
  if (id === 0 && !rule.isWithoutId) throw new ProtocolError(`a message of type ${type} has no id`);
  if (bytes < rule.least || bytes > rule.most)
    throw new ProtocolError(`a message of type ${type} cannot have ${bytes} bytes`);
}

/** What goes wrong while a frame is read means that whoever sent it is broken. */
export function asProtocolError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return new ProtocolError(error instanceof Error ? error.message : String(error), { cause: error });
}

/** Throws where a message that is to go out is longer than a frame and must not be. */
export function checkLong(type: number, bytes: number): void {
  if (!MAY_BE_LONG.has(type))
    throw new ProtocolError(`a message of type ${type} has ${bytes} bytes and must fit into one frame`);
}
