/** A time: local, and UTC on hover. `isAgo`: its age, which goes on. */
import { nowMs, second } from "../format/now.ts";
import { ago, duration, localTime, secondsBetween, utcTime } from "../format/times.ts";

export function Time({ at, isAgo = false }: { at: string | null | undefined; isAgo?: boolean }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  if (isAgo) second.value;
  const local = localTime(at, nowMs());
  return (
    <time dateTime={at} title={isAgo ? `${local} · ${utcTime(at)}` : utcTime(at)}>
      {isAgo ? ago(at, nowMs()) : local}
    </time>
  );
}

/** How long something took, or how long it has been going on. */
export function Elapsed({ from, to }: { from: string; to?: string | null | undefined }) {
  if (!to) second.value;
  return <span class="number">{duration(Math.max(0, secondsBetween(from, to ?? nowMs())))}</span>;
}
