/** The keys of the server, with their last use. */
import { useState } from "preact/hooks";
import { Actions } from "../../actions/actions.tsx";
import { PageHead } from "../../parts/facts.tsx";
import { ApiLink } from "../../parts/link.tsx";
import { Empty, Loaded } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, segment } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import { mayAct } from "../../session/session.ts";
import type { KeyList } from "../../shapes.ts";
import { NewKey } from "./new-key.tsx";

export function KeysPage() {
  const [isNew, setNew] = useState(false);
  const keys = useResource<KeyList>(mayAct.value ? "/-/keys" : undefined);
  if (!mayAct.value)
    return (
      <>
        <PageHead title="Keys" />
        <Empty title="Only a key with the scope admin sees the keys" />
      </>
    );
  return (
    <>
      <PageHead
        title="Keys"
        actions={
          <button type="button" class="primary" onClick={() => setNew(true)}>
            New key…
          </button>
        }
      />
      {isNew && (
        <NewKey
          onClose={() => {
            setNew(false);
            keys.again();
          }}
        />
      )}
      <Loaded resource={keys} lines={4}>
        {({ keys: found }) =>
          found.length === 0 ? (
            <Empty title="There is no key" command="quern keys create --scope predict">
              The first key closes the server: from then on every request needs one.
            </Empty>
          ) : (
            <KeyTable keys={found} again={keys.again} />
          )
        }
      </Loaded>
    </>
  );
}

function KeyTable({ keys, again }: { keys: KeyList["keys"]; again: () => void }) {
  return (
    <Scroll label="keys">
      <table class="wide">
        <thead>
          <tr>
            <th>Key</th>
            <th>Scope</th>
            <th>Created</th>
            <th>Last used</th>
            <th>Ends</th>
            <th>
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <td>
                {key.name ?? <span class="quiet">no name</span>} <code class="small">{key.id}</code>
              </td>
              <td>
                {key.scope}
                {key.api !== null && (
                  <>
                    {" "}
                    for <ApiLink name={key.api} />
                  </>
                )}
              </td>
              <td>
                <Time at={key.created_time} />
              </td>
              <td>
                {key.last_used_time ? (
                  <Time at={key.last_used_time} isAgo />
                ) : (
                  <span class="quiet">never</span>
                )}
              </td>
              <td>{key.expires_time ? <Time at={key.expires_time} /> : <span class="quiet">never</span>}</td>
              <td class="number">
                <Actions
                  after={again}
                  actions={[
                    {
                      label: "Revoke",
                      isDestructive: true,
                      about: `The key ${key.name ?? key.id} opens nothing any more. This cannot be undone.`,
                      run: () => ask<{ message: string }>(`/-/keys/${segment(key.id)}`, { method: "DELETE" }),
                    },
                  ]}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
