/** What a person should look at first, each with the page that says more. */

import { Section } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { Said } from "../../parts/words.tsx";
import type { Attention } from "../../shapes.ts";

export function AttentionList({
  attention,
  reasons,
}: {
  attention: readonly Attention[];
  reasons: readonly string[];
}) {
  const rows = needing(attention, reasons);
  if (rows.length === 0) return <p class="note good">Nothing needs attention.</p>;
  return (
    <Section title="Needs attention">
      <ul class="attention">
        {rows.map((row) => (
          <li key={`${row.kind}${row.name}${row.job_id}${row.title}`}>
            <Status of={row.severity}>
              <span class="hidden">{row.severity}: </span>
              <Target of={row} />
            </Status>
            <span class="what">
              <Said text={row.title} />
            </span>
            {row.time && <Time at={row.time} isAgo />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The errors first. What an API's own row says is not said of the server again. */
export function needing(attention: readonly Attention[], reasons: readonly string[]): Attention[] {
  const isAboutServer = attention.some(({ kind }) => kind === "server");
  const all = isAboutServer ? attention : [...reasons.map(ofServer), ...attention];
  const ofApis = new Set(all.filter(({ kind }) => kind === "api").map(({ title }) => title));
  const rows = all.filter(({ kind, title }) => kind !== "server" || !ofApis.has(title));
  const isError = ({ severity }: Attention) => severity === "error";
  return [...rows.filter(isError), ...rows.filter((row) => !isError(row))];
}

function ofServer(title: string): Attention {
  return { kind: "server", name: "server", job_id: null, severity: "error", title, time: null };
}

function Target({ of: { kind, name, job_id } }: { of: Attention }) {
  if (kind === "server") return <strong>{name}</strong>;
  if (kind === "job" && job_id !== null)
    return (
      <Link to={["jobs", name, job_id]} title={job_id}>
        {name} …{job_id.slice(-8)}
      </Link>
    );
  return <Link to={[kind === "queue" ? "queues" : "apis", name]}>{name}</Link>;
}
