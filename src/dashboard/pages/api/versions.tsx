/** The versions of an API: when each was deployed and by whom, what changed from the one before, and the way back. */
import { useEffect, useRef } from "preact/hooks";
import { Actions } from "../../actions/actions.tsx";
import { address } from "../../address/address.ts";
import { nowMs } from "../../format/now.ts";
import { localMinutes } from "../../format/times.ts";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, segment, withQuery } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { ApiChanges, DescribedApi, Version } from "../../shapes.ts";
import { FileDiffs } from "./file-diffs.tsx";
import { changesOf, haveOtherFiles, type VersionChange } from "./version-changes.ts";
import { entryOfPair, type HistoryEntry, historyOf } from "./version-history.ts";

/** Digits of a version's id. */
export const ID_SHOWN = 13;

export function Versions({ api, again }: { api: DescribedApi; again: () => void }) {
  const path = `/-/apis/${segment(api.name)}`;
  const version = `${api.api_id} ${api.last_updated}`;
  const list = useResource<{ versions: Version[] }>(`${path}/versions`, { version });
  const changes = useResource<ApiChanges>(`${path}/changes`, { version });
  return (
    <Loaded resource={list} lines={4}>
      {({ versions }) => (
        <Loaded resource={changes} lines={4}>
          {(value) => (
            <History history={historyOf(versions, value.changes)} {...{ api: api.name, path, again }} />
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

interface OfApi {
  api: string;
  path: string;
  again: () => void;
}

/** The address may ask for two versions: `from` was replaced by `to`. `at` is the time that they explain. */
function History({ history, ...of }: OfApi & { history: readonly HistoryEntry[] }) {
  const { query } = address.value;
  const at = query.get("at");
  const asked = entryOfPair(history, query.get("from"), query.get("to"));
  return (
    <>
      {asked && at && (
        <p>
          <Link to={["apis", of.api]} query={{ at }}>
            Back to what was at {localMinutes(at, nowMs())}
          </Link>
        </p>
      )}
      <ol class="versions" reversed>
        {history.map((entry) => (
          <Entry key={entry.apiId + entry.time} entry={entry} isAsked={entry === asked} {...of} />
        ))}
      </ol>
    </>
  );
}

interface EntryProps extends OfApi {
  entry: HistoryEntry;
  isAsked: boolean;
}

function Entry({ entry, isAsked, api, path, again }: EntryProps) {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isAsked) item.current?.scrollIntoView({ block: "start" });
  }, [isAsked]);
  const { kind, apiId, time, by, version, isNewest } = entry;
  const isCurrent = isNewest && version?.is_current === true;
  const rollBack = () =>
    ask<{ message: string }>(withQuery(`${path}/rollback`, { api_id: apiId }), { method: "POST" });
  return (
    <li ref={item} class={isAsked ? "asked" : undefined}>
      {isAsked && <p class="small">The change that you came for</p>}
      <header>
        <span>
          {kind === "deployed" ? "Deployed " : "Rolled back to "}
          <code title={apiId}>{apiId.slice(0, ID_SHOWN)}</code>
        </span>
        <span class="quiet">
          <Time at={time} />
          {by && <span title={by.id}> by {by.name}</span>}
        </span>
        {isCurrent && <Status of="live">serves now</Status>}
        {isNewest && version && !isCurrent && (
          <span class="buttons">
            <Actions
              after={again}
              actions={[
                {
                  label: "Roll back to this",
                  of: apiId.slice(0, ID_SHOWN),
                  about: `${api} gets this version's configuration and files. The present replicas serve until the new ones are ready.`,
                  run: rollBack,
                },
              ]}
            />
          </span>
        )}
      </header>
      <Difference entry={entry} path={path} isOpen={isAsked} />
    </li>
  );
}

interface DifferenceProps {
  entry: HistoryEntry;
  path: string;
  /** Its lines are unfolded. */
  isOpen: boolean;
}

function Difference({ entry: { version, former, formerId }, path, isOpen }: DifferenceProps) {
  if (formerId === undefined) return <p class="quiet">the first version that is known</p>;
  if (version === undefined || former === undefined)
    return <p class="quiet">its files, or those of the version before, are no longer kept</p>;
  return (
    <>
      <p class="small quiet">
        compared with <code title={formerId}>{formerId.slice(0, ID_SHOWN)}</code>
      </p>
      <Changes changes={changesOf(former, version)} />
      {haveOtherFiles(former, version) && (
        <FileDiffs path={path} from={former.api_id} to={version.api_id} isOpenFirst={isOpen} />
      )}
    </>
  );
}

function Changes({ changes }: { changes: VersionChange[] }) {
  if (changes.length === 0)
    return <p class="quiet">the same configuration and files as the version before</p>;
  return (
    <ul class="changes">
      {changes.map(({ what, before, after }) => (
        <li key={what}>
          <code>{what}</code> {before === undefined ? <ins>added{after && ` ${after}`}</ins> : null}
          {after === undefined ? <del>removed{before && ` ${before}`}</del> : null}
          {before !== undefined && after !== undefined && (
            <>
              <del>{before}</del> → <ins>{after}</ins>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
