/** What needs a person, the worst first (docs/contract/operations.md#attention). Pure. */
import type { ApiHealth } from "../../apis/api-health.ts";
import type { ApiState } from "../../apis/api-state.ts";
import type { FilledQueue } from "../../batch/letters/queue-counts.ts";
import type { EndedBadly } from "../../batch/listing/overview-jobs.ts";
import type { Attention, OverviewApi, OverviewJob } from "../../contracts/http/overview-operations.ts";
import type { JobReason } from "../../contracts/jobs.ts";
import { ATTENTION_MAX, ATTENTION_TITLE_MAX } from "../../contracts/limits/responses.ts";
import { hideInText } from "../../contracts/secrets.ts";
import type { Slowness } from "../../explain/finding.ts";
import { percent } from "../../explain/words.ts";

/** A rollout, or a job without a worker, that takes longer needs attention. */
export const LONG_MS = 10 * 60_000;

/** Batches of a running job that failed, at least, and their share of those settled. */
const [BATCHES_FAILED_LEAST, BATCHES_FAILED_SHARE, MOST_BATCHES] = [5, 0.05, 0.5];

export interface Troubles {
  nowMs: number;
  server: readonly string[];
  apis: readonly { state: ApiState; health: ApiHealth; pausedTime: string | undefined }[];
  /** The APIs whose requests fail now; `error` is most of them. */
  failing: ReadonlyMap<string, "error" | "warning">;
  /** By API: what an explanation says about its requests that are slow, or have failed for a while. */
  slow: ReadonlyMap<string, Slowness>;
  /** Jobs that have not ended. */
  running: readonly Pick<OverviewJob, "job_id" | "api_name" | "succeeded" | "failed" | "paused_time">[];
  /** Jobs that have waited long for their first worker. */
  waiting: readonly {
    job_id: string;
    api_name: string;
    queued_time: string | null;
    waiting: string | undefined;
  }[];
  ended: readonly EndedBadly[];
  queues: readonly FilledQueue[];
}

export function attentionOf({
  nowMs,
  server,
  apis,
  running,
  waiting,
  ended,
  queues,
  ...traffic
}: Troubles): Attention[] {
  const all = [
    ...server.map((why) => line("server", "server", "error", why)),
    ...apis.flatMap((api) => [...ofApi(api, nowMs), ...ofTraffic(api.state.name, traffic)]),
    ...running.flatMap(ofRunning),
    ...ended.map(ofEnded),
    ...waiting.map(({ job_id, api_name, queued_time, waiting: why }) => ({
      ...line("job", api_name, "warning", `waits for its first worker${why === undefined ? "" : `: ${why}`}`),
      ...{ job_id, time: queued_time },
    })),
    ...queues.map(ofQueue),
  ];
  const bySeverity = (severity: Attention["severity"]) => all.filter((one) => one.severity === severity);
  return [...bySeverity("error"), ...bySeverity("warning")].slice(0, ATTENTION_MAX);
}

function line(
  kind: Attention["kind"],
  name: string,
  severity: Attention["severity"],
  text: string,
): Attention {
  const [first = ""] = hideInText(text).split("\n", 1);
  const title = first.length <= ATTENTION_TITLE_MAX ? first : `${first.slice(0, ATTENTION_TITLE_MAX - 1)}…`;
  return { kind, name, job_id: null, severity, title, time: null };
}

const NOTHING: Attention[] = [];

function ofApi({ state, health, pausedTime }: Troubles["apis"][number], nowMs: number): Attention[] {
  const { name, status, last_updated } = state;
  const isQuiet = health.fault === undefined && health.warning === undefined && status !== "updating";
  if (isQuiet && pausedTime === undefined) return NOTHING;
  const found: Attention[] = [];
  if (health.fault !== undefined) found.push(line("api", name, "error", health.fault));
  else if (health.warning !== undefined) found.push(line("api", name, "warning", health.warning));
  else if (status === "updating" && nowMs - Date.parse(last_updated) > LONG_MS)
    found.push({
      ...line("api", name, "warning", "its newest version is not ready after ten minutes"),
      time: last_updated,
    });
  if (pausedTime !== undefined)
    found.push({
      ...line("api", name, "warning", `paused: no batch begins; \`quern unpause ${name}\` continues it`),
      time: pausedTime,
    });
  return found;
}

/** Its requests, which fail or are slow. */
function ofTraffic(name: string, { failing, slow }: Pick<Troubles, "failing" | "slow">): Attention[] {
  const [severity, told] = [failing.get(name), slow.get(name)];
  if (severity === undefined && told === undefined) return NOTHING;
  const cure = `\`quern explain ${name}\` says why`;
  const share = severity === "error" ? "most" : "some";
  const fail = `${share} requests fail with a 5xx status; ${cure}`;
  return [
    ...(severity === undefined ? [] : [line("api", name, severity, fail)]),
    // An explanation also says since when they fail, in the same words.
    ...(told === undefined || (severity !== undefined && told.kind === "failing")
      ? []
      : [line("api", name, "warning", `${told.title}; ${cure}`)]),
  ];
}

/** In a word what these lines say: an API whose requests fail may be slow as well. */
export function troubleOf(
  name: string,
  { failing, slow }: Pick<Troubles, "failing" | "slow">,
): OverviewApi["trouble"] {
  return failing.has(name) ? "failing" : (slow.get(name)?.kind ?? null);
}

/** In whole percent, so that the line does not change with each batch. */
function ofRunning(job: Troubles["running"][number]): Attention[] {
  const { job_id, api_name, succeeded, failed, paused_time } = job;
  if (paused_time !== null) return NOTHING;
  const settled = succeeded + failed;
  if (failed < BATCHES_FAILED_LEAST || failed < BATCHES_FAILED_SHARE * settled) return NOTHING;
  const severity = failed >= MOST_BATCHES * settled ? "error" : "warning";
  const title = `still runs, and ${percent(failed, settled)} of its batches failed so far`;
  return [{ ...line("job", api_name, severity, title), job_id }];
}

function ofEnded({ job_id, api_name, status, end_time, reason_json }: EndedBadly): Attention {
  const reason = reason_json === null ? undefined : (JSON.parse(reason_json) as JobReason).message;
  // Its other batches succeeded.
  const severity = status === "status_completed_with_failures" ? "warning" : "error";
  const title = reason ?? status.replace("status_", "").replaceAll("_", " ");
  return { ...line("job", api_name, severity, title), job_id, time: end_time };
}

function ofQueue({ name, messages, hasMore, oldest_sent_time }: FilledQueue): Attention {
  const count = messages === 1 && !hasMore ? "1 message" : `${messages}${hasMore ? " or more" : ""} messages`;
  return { ...line("queue", name, "warning", `${count} in the dead letter queue`), time: oldest_sent_time };
}
