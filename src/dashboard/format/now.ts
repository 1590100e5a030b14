/** The clock of the browser. Ages count from the server's own clock, because the two may differ. */
import { signal } from "@preact/signals";

/** How far the server's clock is ahead of this one, in milliseconds. */
let aheadMs = 0;

/** Milliseconds since 1970, by the server's clock. */
export function nowMs(): number {
  return Date.now() + aheadMs;
}

export function serverSaid(time: string): void {
  const said = Date.parse(time);
  if (!Number.isNaN(said)) aheadMs = said - Date.now();
}

/** Changes every second, so that ages go on. */
export const second = signal(0);

setInterval(() => {
  if (!document.hidden) second.value += 1;
}, 1000);
