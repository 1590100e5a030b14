/** What happened to the versions of an API, newest first: deployments, and rollbacks as entries of their own. Pure. */
import type { ApiChange, Version } from "../../shapes.ts";

export interface HistoryEntry {
  kind: "deployed" | "rolled_back";
  apiId: string;
  time: string;
  /** Who did it, as far as it is known. */
  by: { id: string; name: string } | undefined;
  /** Undefined: it is not kept any more. */
  version: Version | undefined;
  formerId: string | undefined;
  former: Version | undefined;
  /** The newest entry of its version: where one can go back to it. */
  isNewest: boolean;
}

/** Changes are kept for two weeks. Of older versions it is known when they were deployed last. */
export function historyOf(versions: readonly Version[], changes: readonly ApiChange[]): HistoryEntry[] {
  const byId = new Map(versions.map((version) => [version.api_id, version]));
  const recorded = changes.flatMap((change) => entryOf(change, byId));
  const known = new Set(recorded.map(({ apiId }) => apiId));
  const older = versions.flatMap((version, at) =>
    known.has(version.api_id) ? [] : [unrecorded(version, versions[at + 1])],
  );
  const all = [...recorded, ...older].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
  const seen = new Set<string>();
  return all.map((entry) => {
    const isNewest = !seen.has(entry.apiId);
    seen.add(entry.apiId);
    return { ...entry, isNewest };
  });
}

/** The newest entry of this pair of versions, each by the first digits of its id; undefined if none is asked for. */
export function entryOfPair(
  history: readonly HistoryEntry[],
  from: string | null,
  to: string | null,
): HistoryEntry | undefined {
  if (!from || !to) return undefined;
  return history.find(({ apiId, formerId }) => apiId.startsWith(to) && formerId?.startsWith(from));
}

type Entry = Omit<HistoryEntry, "isNewest">;

function entryOf(change: ApiChange, byId: ReadonlyMap<string, Version>): Entry[] {
  const { kind, time, api_id, former_api_id, by, by_name } = change;
  if (kind === "replica_ended" || api_id === null) return [];
  return [
    {
      ...{ kind, time, apiId: api_id, version: byId.get(api_id) },
      by: by === null ? undefined : { id: by, name: by_name ?? by },
      formerId: former_api_id ?? undefined,
      former: byId.get(former_api_id ?? ""),
    },
  ];
}

function unrecorded(version: Version, former: Version | undefined): Entry {
  const { api_id: apiId, deployed_time: time } = version;
  return { kind: "deployed", apiId, time, by: undefined, version, formerId: former?.api_id, former };
}
