/** All APIs, with filters in the address. */
import { address, setQuery } from "../../address/address.ts";
import { overview } from "../../live/live.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Choice, Search } from "../../parts/filters.tsx";
import { Empty, Loading } from "../../parts/notes.tsx";
import type { OverviewApi } from "../../shapes.ts";
import { ApiTable, byUrgency } from "../overview/api-table.tsx";

const ORDERS: Record<string, (one: OverviewApi, other: OverviewApi) => number> = {
  name: (one, other) => (one.name < other.name ? -1 : 1),
  trouble: byUrgency,
  requests: (one, other) => other.requests_per_s - one.requests_per_s,
  errors: (one, other) => other.errors_per_s - one.errors_per_s,
  latency: (one, other) => (other.latency_p99_s ?? -1) - (one.latency_p99_s ?? -1),
};
const PAGE_ROWS = 100;

export function ApisPage() {
  const { query } = address.value;
  const search = query.get("search") ?? "";
  const kind = query.get("kind") ?? "";
  const order = ORDERS[query.get("order") ?? ""] ?? byUrgency;
  const apis = overview.value?.apis;
  if (apis === undefined) return <Loading lines={8} />;
  const found = apis
    .filter((api) => api.name.includes(search) && (kind === "" || api.kind === kind))
    .sort(order);
  const most = Number(query.get("rows") ?? PAGE_ROWS);
  return (
    <>
      <PageHead title="APIs" />
      <div class="filters">
        <Search label="Name" value={search} onChange={(text) => setQuery({ search: text })} />
        <Choice
          label="Kind"
          value={kind}
          options={[
            ["", "all"],
            ["RealtimeAPI", "real-time"],
            ["BatchAPI", "batch"],
            ["TrafficSplitter", "splitter"],
          ]}
          onChange={(value) => setQuery({ kind: value })}
        />
        <Choice
          label="Order"
          value={query.get("order") ?? "trouble"}
          options={Object.keys(ORDERS).map((name) => [name, name])}
          onChange={(value) => setQuery({ order: value })}
        />
        <span class="quiet">
          {found.length} of {apis.length}
        </span>
      </div>
      {apis.length === 0 ? (
        <Empty title="Nothing is deployed yet" command="quern deploy" />
      ) : (
        <ApiTable apis={found} most={most} view={query.toString()} />
      )}
      {found.length > most && (
        <button type="button" onClick={() => setQuery({ rows: String(most + PAGE_ROWS) })}>
          Show more of {found.length - most}
        </button>
      )}
    </>
  );
}
