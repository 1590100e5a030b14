/** Decides, purely, which batch a worker's death is charged to, and as what: the one in hand, if that is certain. */
import type { WorkerExit } from "../../engine/engine.ts";
import type { DeliveryNote } from "../../protocol/delivery-note.ts";
import type { FailedAttempt } from "../records/batch-rows.ts";
import { deathFault, timeoutFault } from "./death-faults.ts";

export interface WorkerDeath {
  /** The batch that predict() was working on; undefined if there was none, or if it is unknown. */
  inHand: number | undefined;
  /** All batches that were at the worker, the one in hand included. */
  outstanding: number[];
  /** The note was lost: any of the outstanding batches may have been in hand. */
  isNoteLost: boolean;
  exit: WorkerExit;
  /** It was taken away, as with its pod. No batch is charged, and it does not count as a death. */
  isInterruption: boolean;
  /** We killed it because a batch ran past `predictor.timeout`. */
  timedOut: boolean;
  /** It was killed because it broke the protocol. The batch in hand is then unknown. */
  broken: string | undefined;
}

/** Reads the note that the worker left. `connection`: the number of our connection to it. */
export function inHandOf(
  note: DeliveryNote | undefined,
  connection: number | undefined,
  { outstanding, broken }: Pick<WorkerDeath, "outstanding" | "broken">,
): Pick<WorkerDeath, "inHand" | "isNoteLost"> {
  const isBusy = note?.busy === true && note.connection === connection && broken === undefined;
  return {
    inHand: isBusy && outstanding.includes(note.batch_index) ? note.batch_index : undefined,
    isNoteLost: note === undefined && broken === undefined,
  };
}

/** The same for any death. A pod that is taken away says nothing, unless Quern had a reason to kill the worker. */
export function chargeOf(
  note: DeliveryNote | undefined,
  connection: number | undefined,
  death: Pick<WorkerDeath, "outstanding" | "broken" | "exit" | "timedOut">,
): Pick<WorkerDeath, "inHand" | "isNoteLost" | "isInterruption"> {
  const { exit, timedOut, broken } = death;
  const isInterruption = exit.interruption !== undefined && !timedOut && broken === undefined;
  if (isInterruption) return { inHand: undefined, isNoteLost: false, isInterruption };
  return { ...inHandOf(note, connection, death), isInterruption };
}

/** The batch that is charged for the death. Without a note it is certain only if the worker had a single batch. */
export function chargedBatch({ inHand, isNoteLost, outstanding }: WorkerDeath): number | undefined {
  return inHand ?? (isNoteLost && outstanding.length === 1 ? outstanding[0] : undefined);
}

/** The failure that is charged to the batch in hand. */
export function failureOf(
  { exit, timedOut }: WorkerDeath,
  timeoutMs: number,
): Pick<FailedAttempt, "cause" | "fault"> {
  if (timedOut) return { cause: "fault", fault: timeoutFault(timeoutMs) };
  return { cause: exit.outOfMemory === undefined ? "death" : "oom", fault: deathFault(exit) };
}
