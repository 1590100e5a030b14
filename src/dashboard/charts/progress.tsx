/** The progress of a job: succeeded and failed batches of all, as a bar with the numbers beside it. */
import { percent, whole } from "../format/numbers.ts";

export interface Counts {
  succeeded: number;
  /** Batches that finally failed. */
  failed: number;
  total: number | null;
}

export function Progress({ succeeded, failed, total }: Counts) {
  const done = succeeded + failed;
  const share = total ? Math.min(1, done / total) : 0;
  const text = total === null ? `${whole(done)} of ?` : `${whole(done)} of ${whole(total)}`;
  return (
    <span class="progress" title={`${whole(succeeded)} succeeded, ${whole(failed)} failed`}>
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={`${percent(share)} done`}>
        <rect class="track" width="100" height="6" />
        {total ? (
          <>
            <rect class="good" width={(succeeded / total) * 100} height="6" />
            <rect class="bad" x={(succeeded / total) * 100} width={(failed / total) * 100} height="6" />
          </>
        ) : null}
      </svg>
      <span class="number">{text}</span>
    </span>
  );
}

/** A share of a whole, such as CPUs that are given out. */
export function Share({ used, total, label }: { used: number; total: number; label: string }) {
  const share = total === 0 ? 0 : Math.min(1, used / total);
  return (
    <svg
      class="share"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${percent(share)}`}
    >
      <rect class="track" width="100" height="6" />
      <rect class={share > 0.95 ? "warn" : "busy"} width={share * 100} height="6" />
    </svg>
  );
}
