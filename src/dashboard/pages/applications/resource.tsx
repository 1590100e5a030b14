/** One resource of an application: why it is as it is, its value, its metrics and its log. */
import { Facts, Section } from "../../parts/facts.tsx";
import { Json } from "../../parts/json-view.tsx";
import { ApiLink } from "../../parts/link.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { Status } from "../../parts/status.tsx";
import { Elapsed, Time } from "../../parts/time.tsx";
import { segment, withQuery } from "../../server/request.ts";
import type { ResourceState } from "../../shapes.ts";

export function Resource({ resource, path }: { resource: ResourceState; path: string }) {
  const { kind, name, status, reason, started_time, ended_time, value, metrics, api } = resource;
  const logs = withQuery(`${path}/resources/${segment(name)}/logs`, { kind });
  return (
    <Section title={`${kind.replace("_", " ")} ${name}`}>
      <div class="stack">
        {reason && <p class="note bad">{reason}</p>}
        <Facts
          rows={[
            ["Status", <Status key="status" of={status} />],
            started_time !== undefined && ["Began", <Time key="began" at={started_time} />],
            started_time !== undefined && [
              "Took",
              <Elapsed key="took" from={started_time} to={ended_time} />,
            ],
            api && ["API", <ApiLink key="api" name={api.name} />],
            ...Object.entries(metrics ?? {}).map(([metric, number]) => [metric, String(number)] as const),
          ]}
        />
        {value !== undefined && <Json value={value} label="value" />}
        <Json value={resource.config} label="configuration" />
        <LogView path={logs} label={`log of ${name}`} isLive={false} />
      </div>
    </Section>
  );
}
