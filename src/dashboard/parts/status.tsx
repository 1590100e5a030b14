/** The status of an API, a job, a replica or a resource: a word with a mark whose form also differs, not its colour alone. */
import type { ComponentChildren } from "preact";

export type Tone = "good" | "busy" | "warn" | "bad" | "idle";

const TONES: Record<string, Tone> = {
  live: "good",
  failing: "bad",
  slow: "warn",
  updating: "busy",
  error: "bad",
  "error (out of memory)": "bad",
  "compute unavailable": "warn",
  status_enqueuing: "busy",
  status_running: "busy",
  status_succeeded: "good",
  status_completed_with_failures: "warn",
  status_stopped: "idle",
  ready: "good",
  initializing: "busy",
  draining: "idle",
  gone: "idle",
  paused: "warn",
  pending: "idle",
  skipped: "idle",
  terminated: "idle",
  ok: "good",
  degraded: "warn",
  info: "idle",
  warning: "warn",
};

/** Unknown statuses of jobs and resources are ends that failed; what is being computed is busy. */
export function toneOf(status: string): Tone {
  if (Object.hasOwn(TONES, status)) return TONES[status]!;
  return status.endsWith("ing") ? "busy" : "bad";
}

/** `status_completed_with_failures` as `completed with failures`. */
export function statusWords(status: string): string {
  return status.replace(/^status_/, "").replaceAll("_", " ");
}

const MARKS: Record<Tone, string> = { good: "●", busy: "◐", warn: "▲", bad: "✕", idle: "○" };

export function Status({
  of,
  tone = toneOf(of),
  children,
}: {
  of: string;
  tone?: Tone;
  children?: ComponentChildren;
}) {
  return (
    <span class={`status ${tone}`}>
      <span class="mark" aria-hidden="true">
        {MARKS[tone]}
      </span>
      {children ?? statusWords(of)}
    </span>
  );
}
