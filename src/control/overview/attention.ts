/** What needs a person, the worst first (docs/contract/operations.md#attention). Pure. */
import type { ApiHealth } from "../../apis/api-health.ts";
import type { ApiState } from "../../apis/api-state.ts";
import type { FilledQueue } from "../../batch/letters/queue-counts.ts";
import type { EndedBadly } from "../../batch/listing/overview-jobs.ts";
import type { Attention } from "../../contracts/http/overview-operations.ts";
import type { JobReason } from "../../contracts/jobs.ts";
import { ATTENTION_MAX, ATTENTION_TITLE_MAX } from "../../contracts/limits/responses.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { FEW_FAIL } from "../../explain/api/traffic-findings.ts";

/** A rollout, or a job without a worker, that takes longer needs attention. */
export const LONG_MS = 10 * 60_000;

/** Fewer failed requests in a minute need nobody. */
const FAILED_LEAST = 5;
/** From this share of requests that fail on, it is an error. */
const MOST_FAIL = 0.5;

export interface Newest {
  requests: number;
  errors: number;
}

export interface Troubles {
  nowMs: number;
  server: readonly string[];
  apis: readonly { state: ApiState; health: ApiHealth; pausedTime: string | undefined }[];
  /** By API: requests of the last one or two minutes, and those of them with a 5xx status. */
  newest: ReadonlyMap<string, Newest>;
  /** By API: what an explanation says about its slow requests. */
  slow: ReadonlyMap<string, string>;
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
  waiting,
  ended,
  queues,
  ...traffic
}: Troubles): Attention[] {
  const all = [
    ...server.map((why) => line("server", "server", "error", why)),
    ...apis.flatMap((api) => [...ofApi(api, nowMs), ...ofTraffic(api.state.name, traffic)]),
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
function ofTraffic(name: string, { newest, slow }: Pick<Troubles, "newest" | "slow">): Attention[] {
  const [requests, title] = [newest.get(name), slow.get(name)];
  if (requests === undefined && title === undefined) return NOTHING;
  const cure = `\`quern explain ${name}\` says why`;
  const failing = requests === undefined ? undefined : failingOf(requests);
  const share = failing === "error" ? "most" : "some";
  const fail = `${share} requests fail with a 5xx status; ${cure}`;
  return [
    ...(failing === undefined ? [] : [line("api", name, failing, fail)]),
    // An explanation also says since when they fail, in the same words.
    ...(title === undefined || (failing !== undefined && / failing since /.test(title))
      ? []
      : [line("api", name, "warning", `${title}; ${cure}`)]),
  ];
}

function failingOf({ requests, errors }: Newest): Attention["severity"] | undefined {
  if (errors < FAILED_LEAST || errors < FEW_FAIL * requests) return undefined;
  return errors >= MOST_FAIL * requests ? "error" : "warning";
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
