/** What the account of compute knows about each reservation, and about each request that waits for one. */
import type { Claim, Claimant, Holding } from "./scheduler/claims.ts";

/** Granted compute. The same object must be given back. */
export interface Reservation {
  cpuMillis: number;
  memoryBytes: number;
  /** The names of the GPUs. */
  gpus: readonly string[];
}

export interface Ask {
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

export const OTHERS: Claimant = {
  holder: "others",
  priority: 0,
  apiName: "others",
  api: "others",
  job: "others",
  isPassing: false,
};

export interface WaitingAsk extends Ask, Claim {
  onReserved: (reservation: Reservation) => void;
  /** Reserved for this request, until `onReserved` is called. */
  reservation: Reservation | undefined;
}

/** When a worker may be asked to yield, and who tells it. */
export interface Yielding {
  /** Monotonic milliseconds. */
  fromMs: number;
  /** It should yield between two batches, or no longer. */
  asked: (isAsked: boolean) => void;
}

export interface Held extends Holding {
  yieldsFromMs: number;
  isYielding: boolean;
  asked: Yielding["asked"] | undefined;
}

export function newlyHeld(reservation: Reservation, by: Claimant): Held {
  const compute = { ...reservation, gpus: reservation.gpus.length };
  return { by, compute, yieldsFromMs: Number.POSITIVE_INFINITY, isYielding: false, asked: undefined };
}
