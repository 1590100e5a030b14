/** Slices of the event loop that all streams of this process share: however many there are, one of them runs in a turn. */
import { OneEachTurn } from "../../base/loop/turns.ts";

/** A block takes one or two milliseconds. */
const SLICE_MS = 5;

const turns = new OneEachTurn();
let beganMs = 0;

/** Whether the current slice has taken long enough. */
export function isSliceOver(): boolean {
  return performance.now() - beganMs > SLICE_MS;
}

/** Lets others run. */
export async function nextSlice(): Promise<void> {
  await turns.turn();
  beganMs = performance.now();
}
