/** The versions that were deployed or rolled back in the time of the plots: lines in them, and a list below. */
import { useMemo } from "preact/hooks";
import type { Mark } from "../../charts/plot.tsx";
import { counted } from "../../format/numbers.ts";
import { Link } from "../../parts/link.tsx";
import { Time } from "../../parts/time.tsx";
import { segment } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { ApiChange, ApiChanges } from "../../shapes.ts";
import { ID_SHOWN } from "./versions.tsx";

/** More are counted. */
const LISTED = 5;

export interface PlotMarks {
  marks: readonly Mark[];
  changes: readonly ApiChange[];
}

/** `version`: changes with each deployment. */
export function useMarks(api: string, fromS: number, version: unknown): PlotMarks {
  const read = useResource<ApiChanges>(`/-/apis/${segment(api)}/changes`, { version });
  return useMemo(() => {
    const changes = (read.value?.changes ?? []).filter(
      ({ kind, time }) => kind !== "replica_ended" && Date.parse(time) / 1000 >= fromS,
    );
    return { changes, marks: changes.map(markOf) };
  }, [read.value, fromS]);
}

function markOf(change: ApiChange): Mark {
  const isBack = change.kind === "rolled_back";
  return {
    timeS: Date.parse(change.time) / 1000,
    label: wordsOf(change),
    colour: isBack ? "warn" : "accent",
  };
}

function wordsOf({ kind, api_id, by, by_name }: ApiChange): string {
  const who = by === null ? "" : ` by ${by_name ?? by}`;
  return `${kind === "rolled_back" ? "rolled back to" : "deployed"} ${api_id?.slice(0, ID_SHOWN)}${who}`;
}

export function MarkList({ api, changes }: { api: string; changes: readonly ApiChange[] }) {
  if (changes.length === 0) return null;
  const more = changes.length - LISTED;
  return (
    <ul class="marks small" aria-label="versions in this time">
      {changes.slice(0, LISTED).map((change) => (
        <li key={change.time + change.kind}>
          <span class={`point ${change.kind === "rolled_back" ? "warn" : "accent"}`} aria-hidden="true">
            ▼
          </span>
          <Time at={change.time} /> {wordsOf(change)}
        </li>
      ))}
      <li>
        <Link to={["apis", api]} query={{ tab: "versions" }}>
          {more > 0 ? `${counted(more, "earlier one")}, and what changed` : "What changed"}
        </Link>
      </li>
    </ul>
  );
}
