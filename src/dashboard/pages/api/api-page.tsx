/** One API: what is wrong, its plots, replicas or jobs, versions, logs, and a form that sends a request. */

import { Actions } from "../../actions/actions.tsx";
import { open, pageUrl } from "../../address/address.ts";
import { apiStatus } from "../../format/api-status.ts";
import { overview } from "../../live/live.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Findings } from "../../parts/findings.tsx";
import { Pre } from "../../parts/json-view.tsx";
import { Link } from "../../parts/link.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { openTab, type Tab, Tabs } from "../../parts/tabs.tsx";
import { Words } from "../../parts/words.tsx";
import { shownJson } from "../../server/exact-json.ts";
import { ask, segment } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { DescribedApi, OverviewApi } from "../../shapes.ts";
import { JobList } from "../jobs/job-list.tsx";
import { ApiPlots } from "./api-plots.tsx";
import { ApiSummary } from "./api-summary.tsx";
import { Classes } from "./classes.tsx";
import { Replicas } from "./replicas.tsx";
import { TryForm } from "./try-form.tsx";
import { Versions } from "./versions.tsx";

const TABS: Record<string, readonly Tab[]> = {
  RealtimeAPI: [
    { id: "now", label: "Now" },
    { id: "versions", label: "Versions" },
    { id: "configuration", label: "Configuration" },
    { id: "logs", label: "Logs" },
    { id: "try", label: "Try it" },
  ],
  BatchAPI: [
    { id: "now", label: "Now" },
    { id: "versions", label: "Versions" },
    { id: "configuration", label: "Configuration" },
  ],
  TrafficSplitter: [
    { id: "now", label: "Now" },
    { id: "versions", label: "Versions" },
    { id: "configuration", label: "Configuration" },
    { id: "try", label: "Try it" },
  ],
};

export function ApiPage({ name }: { name: string }) {
  const row = overview.value?.apis.find((api) => api.name === name);
  // Its status changes: read it again.
  const version =
    row &&
    `${row.api_id} ${row.status} ${row.ready_replicas} ${row.paused_time} ${row.running_jobs} ${row.trouble}`;
  const api = useResource<DescribedApi>(`/-/apis/${segment(name)}`, { version });
  return (
    <>
      <PageHead
        above={<Link to={["apis"]}>APIs</Link>}
        title={name}
        actions={api.value && <ApiActions api={api.value} again={api.again} />}
      >
        {api.value && (
          <>
            <Status
              of={apiStatus({
                ...{ status: api.value.status, paused_time: api.value.paused_time ?? null },
                trouble: row?.trouble ?? null,
              })}
            />
            {api.value.message && (
              <span>
                <Words text={api.value.message} />
              </span>
            )}
          </>
        )}
      </PageHead>
      <Loaded resource={api} lines={8}>
        {(value) => <Known api={value} row={row} version={version} again={api.again} />}
      </Loaded>
    </>
  );
}

interface KnownProps {
  api: DescribedApi;
  row: OverviewApi | undefined;
  version: string | undefined;
  again: () => void;
}

function Known({ api, row, version, again }: KnownProps) {
  const tabs = TABS[api.kind]!;
  const tab = openTab(tabs);
  const path = `/-/apis/${segment(api.name)}`;
  return (
    <>
      <Tabs tabs={tabs} label={`parts of ${api.name}`} />
      {tab === "now" && (
        <>
          <Findings path={`${path}/explain`} version={version} />
          <ApiSummary api={api} row={row} />
          {api.kind === "BatchAPI" ? (
            <JobList api={api.name} />
          ) : (
            <ApiPlots api={api.name} version={api.api_id} />
          )}
          {api.kind === "BatchAPI" && <ApiPlots api={api.name} version={api.api_id} isBatch />}
          {api.kind === "RealtimeAPI" && <Replicas replicas={api.replicas} />}
          {api.metrics && <Classes metrics={api.metrics} />}
        </>
      )}
      {tab === "versions" && <Versions api={api} again={again} />}
      {tab === "configuration" && <Pre text={shownJson(api.spec)} label="configuration" />}
      {tab === "logs" && <LogView path={`${path}/logs`} label={`log of ${api.name}`} />}
      {tab === "try" && <TryForm api={api} />}
    </>
  );
}

function ApiActions({ api, again }: { api: DescribedApi; again: () => void }) {
  const path = `/-/apis/${segment(api.name)}`;
  const post = (verb: string) => () => ask<{ message: string }>(`${path}/${verb}`, { method: "POST" });
  const isPaused = api.paused_time !== undefined;
  return (
    <Actions
      after={again}
      actions={[
        api.kind === "BatchAPI" && {
          label: isPaused ? "Unpause" : "Pause",
          run: post(isPaused ? "unpause" : "pause"),
          about: isPaused
            ? "Its jobs continue."
            : "No new batch of its jobs begins. Batches in hand end. New jobs wait.",
        },
        api.kind === "RealtimeAPI" && {
          label: "Refresh",
          run: post("refresh"),
          about: "New replicas of the same version start. The present ones serve until they are ready.",
        },
        {
          label: "Delete",
          isDestructive: true,
          typed: api.name,
          after: () => open(pageUrl(["apis"]), { replace: true }),
          run: () => ask<{ message: string }>(path, { method: "DELETE" }),
          about:
            api.kind === "BatchAPI"
              ? "The API is gone, and its running jobs are stopped. Their records stay until they are removed."
              : "The API is gone at once, and its requests get 404.",
        },
      ]}
    />
  );
}
