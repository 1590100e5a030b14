/** One application: its resources as a graph, the chosen one in detail, and its actions. */

import { Actions } from "../../actions/actions.tsx";
import { address, open, pageUrl } from "../../address/address.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, segment } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { ApplicationState } from "../../shapes.ts";
import { stateOf } from "./applications-page.tsx";
import { Resource } from "./resource.tsx";
import { ResourceMap } from "./resource-map.tsx";

export function ApplicationPage({ name }: { name: string }) {
  const path = `/-/applications/${segment(name)}`;
  const app = useResource<ApplicationState>(`${path}?values=true`, { everyMs: 2000 });
  const chosen = address.value.query.get("resource");
  return (
    <>
      <PageHead
        above={<Link to={["applications"]}>Applications</Link>}
        title={name}
        actions={
          <Actions
            after={app.again}
            actions={[
              {
                label: "Refresh",
                about:
                  "The data is read again, and everything is computed anew. APIs serve the old models until then.",
                run: () => ask<{ message: string }>(`${path}/refresh`, { method: "POST" }),
              },
              {
                label: "Delete",
                isDestructive: true,
                typed: name,
                after: () => open(pageUrl(["applications"]), { replace: true }),
                about: "Its APIs, models and data are gone.",
                run: () => ask<{ message: string }>(path, { method: "DELETE" }),
              },
            ]}
          />
        }
      >
        {app.value && (
          <>
            <Status of={stateOf(app.value)} />
            <span class="quiet">
              environment {app.value.environment}, data of <Time at={app.value.data_version} />
            </span>
          </>
        )}
      </PageHead>
      <Loaded resource={app} lines={8}>
        {({ resources }) => {
          const resource = resources.find(({ kind, name: own }) => `${kind}/${own}` === chosen);
          return (
            <>
              <ResourceMap
                resources={resources}
                chosen={chosen}
                linkTo={(kind, own) => pageUrl(["applications", name], { resource: `${kind}/${own}` })}
              />
              {resource && <Resource resource={resource} path={path} />}
            </>
          );
        }}
      </Loaded>
    </>
  );
}
