/** What a person should look at first, each with the page that says more. */

import { Section } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { Status } from "../../parts/status.tsx";
import { useSteady } from "../../parts/steady.ts";
import { Time } from "../../parts/time.tsx";
import { Said } from "../../parts/words.tsx";
import type { Attention } from "../../shapes.ts";

export function AttentionList({
  attention,
  reasons,
  isHeld,
}: {
  attention: readonly Attention[];
  reasons: readonly string[];
  /** The lines stay where they are. */
  isHeld: boolean;
}) {
  const rows = useSteady(needing(attention, reasons), keyOf, isHeld);
  if (rows.length === 0) return <p class="note good">Nothing needs attention.</p>;
  return (
    <Section title="Needs attention">
      <ul class="attention">
        {rows.map((row) => (
          <li key={keyOf(row)}>
            <Status of={row.severity}>
              <span class="hidden">{row.severity}: </span>
              <Target of={row} />
            </Status>
            <span class="what">
              <Said text={row.title.replace(EXPLAINED_BY, "")} />
            </span>
            {row.time && <Time at={row.time} isAgo />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The page of an API says why: a person at the pages needs no command for it. */
const EXPLAINED_BY = /; `quern explain \S+` says why$/;

const FAILING = /^(?:most|some) requests fail |^Requests have been failing /;

/** Numbers change while a line stays. Of the requests of an API there is one line that they fail, in several words. */
function keyOf({ kind, name, job_id, title }: Attention): string {
  const about = kind === "api" && FAILING.test(title) ? "failing" : title.replace(/[\d.,]+/g, "");
  return `${kind} ${name} ${job_id} ${about}`;
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
