/** The first page: what needs attention, what runs, and what the machine has left. */

import { Share } from "../../charts/progress.tsx";
import { bytes, counted, short } from "../../format/numbers.ts";
import { overview } from "../../live/live.ts";
import { PageHead, Section } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { Empty, Loading } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { useHold } from "../../parts/steady.ts";
import type { ComputePart, Overview } from "../../shapes.ts";
import { ApiTable, byUrgency } from "./api-table.tsx";
import { AttentionList, needing } from "./attention-list.tsx";
import { RunningJobs } from "./running-jobs.tsx";

export function OverviewPage() {
  const now = overview.value;
  return (
    <>
      <PageHead title="Overview" actions={now && <HowItIs now={now} />} />
      {now === undefined ? <Loading lines={8} /> : <Known now={now} />}
    </>
  );
}

/** In one word what the list below says. Jobs and queues that need attention do not make the server degraded. */
function HowItIs({ now: { server, attention } }: { now: Overview }) {
  const rows = needing(attention, server.reasons);
  if (server.status !== "ok") return <Status of={server.status}>server {server.status}</Status>;
  if (rows.length === 0) return <Status of="ok">all well</Status>;
  return <Status of={rows[0]!.severity}>{counted(rows.length, "needs attention", "need attention")}</Status>;
}

function Known({ now }: { now: Overview }) {
  if (now.apis.length === 0 && now.jobs.length === 0) return <FirstSteps />;
  return <Lists now={now} />;
}

/** While the mouse is over a list, no line above it goes: the line below would move under the mouse. */
function Lists({ now }: { now: Overview }) {
  const { isHeld, handlers } = useHold();
  return (
    <>
      <div class="lists" {...handlers}>
        <AttentionList attention={now.attention} reasons={now.server.reasons} isHeld={isHeld} />
        <Compute compute={now.compute} />
        <Section title="APIs" actions={<Link to={["apis"]}>all {now.apis.length}</Link>}>
          <ApiTable apis={[...now.apis].sort(byUrgency)} most={SHOWN_APIS} />
        </Section>
      </div>
      <Section title="Running jobs" actions={<Link to={["jobs"]}>all jobs</Link>}>
        <RunningJobs jobs={now.jobs} />
      </Section>
    </>
  );
}

const SHOWN_APIS = 12;

function FirstSteps() {
  return (
    <Empty title="Nothing is deployed yet" command="quern init hello && cd hello && quern deploy">
      This makes a small API from a template and deploys it. It appears here while it starts.
    </Empty>
  );
}

function Compute({ compute }: { compute: Overview["compute"] }) {
  const { cpus, memory_bytes, gpus } = compute;
  return (
    <section class="tiles" aria-label="what workers have reserved">
      <Tile label="CPUs" part={cpus} format={short} />
      <Tile label="Memory" part={memory_bytes} format={bytes} />
      {gpus.total > 0 && <Tile label="GPUs" part={gpus} format={short} />}
    </section>
  );
}

function Tile({
  label,
  part,
  format,
}: {
  label: string;
  part: ComputePart;
  format: (value: number) => string;
}) {
  const used = part.total - part.free;
  return (
    <div class="tile">
      <h2>{label}</h2>
      <p>
        <strong>{used === 0 ? "none" : format(used)}</strong>{" "}
        <span class="quiet">of {format(part.total)} reserved</span>
      </p>
      <Share used={used} total={part.total} label={label} />
    </div>
  );
}
