/** Rows that keep their places while the mouse is over them: somebody is about to click on one. */
import { useRef, useState } from "preact/hooks";
import { inTheirPlaces } from "../format/in-their-places.ts";

/** Nobody is about to click any more. */
const RESTS_MS = 20_000;

/** Whether the mouse is over the element that has these handlers, and was moved there lately. */
export function useHold() {
  const [isHeld, hold] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const leave = () => {
    clearTimeout(timer.current);
    hold(false);
  };
  const move = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(leave, RESTS_MS);
    hold(true);
  };
  return { isHeld, handlers: { onPointerEnter: move, onPointerMove: move, onPointerLeave: leave } };
}

/** `view`: what the person has asked for, such as a filter. Another one shows the rows as they are. */
export function useSteady<Row>(
  now: readonly Row[],
  keyOf: (row: Row) => string,
  isHeld: boolean,
  view = "",
): readonly Row[] {
  const shown = useRef({ rows: now, view });
  const isSteady = isHeld && shown.current.view === view;
  shown.current = { rows: isSteady ? inTheirPlaces(shown.current.rows, now, keyOf) : now, view };
  return shown.current.rows;
}
