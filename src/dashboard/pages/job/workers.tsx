/** The workers of a job over time: a table whose rows have a bar, so that it is also read aloud. */
import { useEffect, useState } from "preact/hooks";
import { nowMs, second } from "../../format/now.ts";
import { counted, whole } from "../../format/numbers.ts";
import { duration, secondsBetween } from "../../format/times.ts";
import { Section } from "../../parts/facts.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Elapsed, Time } from "../../parts/time.tsx";
import { useResource } from "../../server/use-resource.ts";
import type { JobWorkersShown } from "../../shapes.ts";

type Span = JobWorkersShown["workers"][number];

const REFRESH_MS = 5_000;
const SHOWN = 25;

/** `version`: changes when workers start and end. */
export function Workers({ path, version, isOver }: { path: string; version: unknown; isOver: boolean }) {
  // Some end after the job.
  const [areGone, setGone] = useState(false);
  const everyMs = areGone ? undefined : REFRESH_MS;
  const workers = useResource<JobWorkersShown>(`${path}/workers`, { version, everyMs });
  const spans = workers.value?.workers;
  useEffect(
    () => setGone(isOver && (spans?.every(({ ended_time }) => ended_time !== null) ?? false)),
    [isOver, spans],
  );
  return (
    <Section title="Workers" actions={<Legend />}>
      <Loaded resource={workers} lines={2}>
        {({ workers: all }) =>
          all.length === 0 ? <p class="quiet">No worker has started yet.</p> : <Timeline spans={all} />
        }
      </Loaded>
    </Section>
  );
}

/** What the colours of the bars mean. */
function Legend() {
  return (
    <span class="legend">
      <span class="key idle">starting</span>
      <span class="key busy">works</span>
      <span class="key good">worked</span>
      <span class="key bad">died</span>
    </span>
  );
}

/** Those that work first, then the newest. */
function Timeline({ spans }: { spans: readonly Span[] }) {
  const [isAll, setAll] = useState(false);
  const hasOpen = spans.some(({ ended_time }) => ended_time === null);
  if (hasOpen) second.value;
  const fromMs = Math.min(...spans.map(({ started_time }) => Date.parse(started_time)));
  const ends = spans.map(({ ended_time }) => (ended_time === null ? nowMs() : Date.parse(ended_time)));
  const toMs = Math.max(fromMs + 1, ...ends);
  const sorted = [...spans].sort((a, b) => rankOf(a) - rankOf(b));
  const shown = isAll ? sorted : sorted.slice(0, SHOWN);
  return (
    <>
      <Scroll label="workers over time">
        <table class="workers">
          <thead>
            <tr>
              <th>Worker</th>
              <th class="over-time">
                <span>
                  <Time at={new Date(fromMs).toISOString()} />
                  <Time at={new Date(toMs).toISOString()} />
                </span>
              </th>
              <th>State</th>
              <th class="number">Start</th>
              <th class="number">Worked</th>
              <th class="number">Batches</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((span) => (
              <Row key={span.worker_id + span.started_time} span={span} fromMs={fromMs} toMs={toMs} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {sorted.length > SHOWN && (
        <button type="button" class="plain" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? `Show ${SHOWN}` : `Show all ${counted(sorted.length, "row")}`}
        </button>
      )}
    </>
  );
}

function rankOf({ ended_time, started_time }: Span): number {
  return (ended_time === null ? -1e14 : 0) - Date.parse(started_time);
}

interface RowProps {
  span: Span;
  fromMs: number;
  toMs: number;
}

function Row({ span, fromMs, toMs }: RowProps) {
  const { worker_id, started_time, ready_time, ended_time, batches, workers } = span;
  return (
    <tr>
      <td class="mono">{workers > 1 ? counted(workers, "worker") : worker_id}</td>
      <td class="over-time">
        <Bar span={span} fromMs={fromMs} toMs={toMs} />
      </td>
      <td>
        <State span={span} />
      </td>
      <td class="number">{ready_time ? duration(secondsBetween(started_time, ready_time)) : "–"}</td>
      <td class="number">{ready_time ? <Elapsed from={ready_time} to={ended_time} /> : "–"}</td>
      <td class="number">{whole(batches)}</td>
    </tr>
  );
}

/** Starting, then working, as shares of the whole time. A death has a mark at its end. */
function Bar({ span: { started_time, ready_time, ended_time, how }, fromMs, toMs }: RowProps) {
  const at = (time: string | null) =>
    (1000 * ((time === null ? nowMs() : Date.parse(time)) - fromMs)) / (toMs - fromMs);
  const [start, end] = [at(started_time), at(ended_time)];
  const ready = ready_time === null ? end : at(ready_time);
  const isBad = how === "died" || how === "failed" || how === "lost";
  const wide = (from: number, to: number) => Math.max(4, Math.min(1000, to) - from);
  return (
    <svg class="span" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="1000" height="12" />
      <rect class="idle" x={start} width={wide(start, ready)} height="12" />
      {ready_time !== null && (
        <rect class={ended_time === null ? "busy" : "good"} x={ready} width={wide(ready, end)} height="12" />
      )}
      {isBad && <rect class="bad" x={Math.max(0, Math.min(end, 1000) - 8)} width="8" height="12" />}
    </svg>
  );
}

const TONES: Record<NonNullable<Span["how"]>, Tone> = {
  ended: "idle",
  recycled: "idle",
  yielded: "idle",
  died: "bad",
  failed: "bad",
  lost: "warn",
};
const ENDS: Record<NonNullable<Span["how"]>, string> = {
  ended: "ended",
  recycled: "was replaced: max_requests or max_age",
  yielded: "yielded its compute",
  died: "died",
  failed: "could not be set up",
  lost: "ended with its server",
};

function State({ span: { ended_time, ready_time, how, reason, batch_in_hand, in_hand_s } }: { span: Span }) {
  if (ended_time !== null && how !== null)
    return (
      <Status of={how} tone={TONES[how]}>
        {reason === null ? ENDS[how] : `${ENDS[how]}: ${reason}`}
      </Status>
    );
  if (ready_time === null) return <Status of="starting" tone="busy" />;
  if (batch_in_hand === null)
    return (
      <Status of="idle" tone="idle">
        has no batch
      </Status>
    );
  return (
    <Status of="working" tone="good">
      batch {whole(batch_in_hand)} for {duration(in_hand_s ?? 0)}
    </Status>
  );
}
