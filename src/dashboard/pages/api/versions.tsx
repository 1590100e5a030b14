/** The versions of an API: what changed from one to the next, and the way back. */
import { Actions } from "../../actions/actions.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, segment, withQuery } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { DescribedApi, Version } from "../../shapes.ts";
import { changesOf, type VersionChange } from "./version-changes.ts";

export function Versions({ api, again }: { api: DescribedApi; again: () => void }) {
  const path = `/-/apis/${segment(api.name)}`;
  const list = useResource<{ versions: Version[] }>(`${path}/versions`, { version: api.api_id });
  return (
    <Loaded resource={list} lines={4}>
      {({ versions }) => (
        <ol class="versions" reversed>
          {versions.map((version, at) => (
            <li key={version.api_id + version.deployed_time}>
              <header>
                <code>{version.api_id}</code>
                {version.is_current && <Status of="live">deployed</Status>}
                <span class="quiet">
                  since <Time at={version.deployed_time} />
                </span>
                {!version.is_current && (
                  <span class="buttons">
                    <Actions
                      after={again}
                      actions={[
                        {
                          label: "Roll back to this",
                          about: `${api.name} gets this version's configuration and files. The present replicas serve until the new ones are ready.`,
                          run: () =>
                            ask(withQuery(`${path}/rollback`, { api_id: version.api_id }), {
                              method: "POST",
                            }),
                        },
                      ]}
                    />
                  </span>
                )}
              </header>
              <Changes changes={versions[at + 1] && changesOf(versions[at + 1]!, version)} />
            </li>
          ))}
        </ol>
      )}
    </Loaded>
  );
}

function Changes({ changes }: { changes: VersionChange[] | undefined }) {
  if (changes === undefined) return <p class="quiet">the oldest version that is kept</p>;
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
