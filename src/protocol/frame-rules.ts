/**
 * The rules that every frame must follow, checked on this side of each connection to a worker. The worker checks its
 * own side (python/quern_runtime/protocol.py). After a side breaks a rule, nothing that it sends is believed.
 */
import { FLAG_MORE } from "./frames.ts";
import { MESSAGE } from "./messages.ts";

/** The other side, or this one, has broken a rule of the protocol: the connection is useless. */
export class ProtocolError extends Error {}

/** Every other message is one frame, so that messages keep their order by construction. */
const MAY_BE_LONG = new Set<number>([
  MESSAGE.INIT,
  MESSAGE.PREDICT,
  MESSAGE.LEASE,
  MESSAGE.LEASE_PART,
  MESSAGE.RESULT,
  MESSAGE.CHUNK,
]);
const WITHOUT_ID = new Set<number>([
  MESSAGE.WELCOME,
  MESSAGE.READY,
  MESSAGE.INIT_FAILED,
  MESSAGE.REFUSED,
  // WINDOW may be for INIT, which has no id.
  MESSAGE.WINDOW,
  MESSAGE.OUTPUT,
  MESSAGE.RECYCLE,
]);
/** Minimum and maximum bytes of a body, for types that have a fixed limit. */
const BODY_BYTES: Readonly<Record<number, readonly [number, number]>> = {
  [MESSAGE.WINDOW]: [4, 4],
  [MESSAGE.BUSY]: [0, 0],
  [MESSAGE.START]: [0, 0],
  [MESSAGE.ACK]: [16, Number.POSITIVE_INFINITY],
  [MESSAGE.RELEASE]: [4, 4],
  [MESSAGE.END]: [0, 0],
  [MESSAGE.OUTPUT]: [1, Number.POSITIVE_INFINITY],
  [MESSAGE.RECYCLE]: [4, 4],
};

interface Rule {
  mayBeLong: boolean;
  isWithoutId: boolean;
  least: number;
  most: number;
}

/** Rules by type; undefined for types that no worker sends after its WELCOME. */
const FROM_WORKER: readonly (Rule | undefined)[] = Array.from({ length: 256 }, (_, type) => {
  const isTheirs = type === MESSAGE.WINDOW || (type > MESSAGE.WELCOME && type <= MESSAGE.RECYCLE);
  const [least, most] = BODY_BYTES[type] ?? [0, Number.POSITIVE_INFINITY];
  return isTheirs
    ? { mayBeLong: MAY_BE_LONG.has(type), isWithoutId: WITHOUT_ID.has(type), least, most }
    : undefined;
});

/** Throws for a frame that no worker sends. */
export function checkFrame(type: number, flags: number, id: number, bytes: number): void {
  const rule = FROM_WORKER[type];
  if (rule === undefined) throw new ProtocolError(`workers do not send messages of type ${type}`);
  if (flags !== 0 && (flags !== FLAG_MORE || !rule.mayBeLong))
    throw new ProtocolError(`a message of type ${type} cannot have the flags ${flags}`);
  if (id === 0 && !rule.isWithoutId) throw new ProtocolError(`a message of type ${type} has no id`);
  if (bytes < rule.least || bytes > rule.most)
    throw new ProtocolError(`a message of type ${type} cannot have ${bytes} bytes`);
}

/** An error while a frame is read means that its sender is broken. */
export function asProtocolError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return new ProtocolError(error instanceof Error ? error.message : String(error), { cause: error });
}

/** Throws if an outgoing message is longer than a frame but must fit into one. */
export function checkLong(type: number, bytes: number): void {
  if (!MAY_BE_LONG.has(type))
    throw new ProtocolError(`a message of type ${type} has ${bytes} bytes and must fit into one frame`);
}
