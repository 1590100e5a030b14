/** Who changed what, and what was refused: newest first. */
import { useEffect, useState } from "preact/hooks";
import { address, setQuery } from "../../address/address.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Choice, Search } from "../../parts/filters.tsx";
import { Empty, ErrorNote, Loading } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { asError } from "../../server/problem.ts";
import { send, withQuery } from "../../server/request.ts";

interface AuditLine {
  time: string;
  method: string;
  path: string;
  by: string | null;
  by_name?: string;
  client?: string;
  status: number;
  request_id: string;
  what?: string;
}

const LINES_MAX = 1000;
const RANGES = ["1h", "24h", "168h"] as const;

export function AuditPage() {
  const { query } = address.value;
  const since = query.get("since") ?? "24h";
  const search = query.get("search") ?? "";
  const { lines, error } = useAudit(since);
  const found = (lines ?? []).filter((line) => search === "" || JSON.stringify(line).includes(search));
  return (
    <>
      <PageHead title="Audit" />
      <div class="filters">
        <Search label="Path, key or address" value={search} onChange={(text) => setQuery({ search: text })} />
        <Choice
          label="Since"
          value={since}
          options={RANGES.map((range) => [range, range])}
          onChange={(value) => setQuery({ since: value })}
        />
      </div>
      {error && <ErrorNote error={error} />}
      {lines === undefined && !error && <Loading lines={6} />}
      {lines !== undefined && found.length === 0 && <Empty title="Nothing was changed or refused" />}
      {found.length > 0 && <AuditTable lines={found} />}
    </>
  );
}

function AuditTable({ lines }: { lines: readonly AuditLine[] }) {
  return (
    <Scroll label="audit">
      <table class="wide">
        <thead>
          <tr>
            <th>Time</th>
            <th>Status</th>
            <th>Request</th>
            <th>By</th>
            <th>From</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.time + line.request_id}>
              <td>
                <Time at={line.time} />
              </td>
              <td>
                <Status of={line.status < 400 ? "ok" : "warning"}>{line.status}</Status>
              </td>
              <td>
                <code class="clip">
                  {line.method} {line.path}
                </code>
                {line.what && <p class="small quiet">{line.what}</p>}
              </td>
              <td>{line.by_name ?? line.by ?? <span class="quiet">no key</span>}</td>
              <td>{line.client}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function useAudit(since: string) {
  const [state, setState] = useState<{ lines?: AuditLine[]; error?: Error }>({});
  useEffect(() => {
    const left = new AbortController();
    setState({});
    send(withQuery("/-/audit", { since }), { signal: left.signal })
      .then((response) => response.text())
      .then((text) => setState({ lines: newest(text) }))
      .catch((thrown) => left.signal.aborted || setState({ error: asError(thrown) }));
    return () => left.abort();
  }, [since]);
  return state;
}

function newest(text: string): AuditLine[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines
    .slice(-LINES_MAX)
    .reverse()
    .map((line) => JSON.parse(line) as AuditLine);
}
