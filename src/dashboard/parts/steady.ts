/** Rows that keep their places while the mouse is over them: somebody is about to click on one. */
import { useRef, useState } from "preact/hooks";
import { inTheirPlaces } from "../format/in-their-places.ts";

/** Whether the mouse is over the element that has these handlers. */
export function useHold() {
  const [isHeld, hold] = useState(false);
  return { isHeld, handlers: { onPointerEnter: () => hold(true), onPointerLeave: () => hold(false) } };
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
