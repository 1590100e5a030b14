/**
 * `/-/metrics`: the metrics for Prometheus. The number of labels is limited: names of APIs, states, error codes, a
 * hundred classes per API, and a hundred dead letter queues.
 */
import { Hono } from "hono";
import type { Reports } from "../apis/reports.ts";
import type { ApiReplicas } from "../apis/serving/api-replicas.ts";
import { wallMs } from "../base/clock.ts";
import { JOB_DURATION_BOUNDS_S } from "../batch/end/job-durations.ts";
import type { Jobs } from "../batch/jobs.ts";
import { DURATION_BOUNDS_S, type Histogram, type LoopDelay, type Tally } from "../contracts/reports.ts";
import {
  EXPOSITION_TYPE,
  exposition,
  type Family,
  histogramSamples,
  type Sample,
} from "../observe/exposition.ts";
import type { LoopDelayMeter } from "../observe/loop-delay.ts";
import { CoalescedAnswer } from "./answers/coalesced-answer.ts";
import { SERVER_METRICS, type ServerMetricsDeps, serverSamples } from "./server-metrics.ts";
import { WORKER_METRICS, type WorkerInMemory, workerSamples } from "./worker-metrics.ts";

export interface MetricsRoutesDeps extends ServerMetricsDeps {
  /** The event loop of this process. */
  loop: LoopDelayMeter;
  reports: Reports;
  replicas: ApiReplicas;
  jobs: Jobs;
  workersInMemory: () => Promise<WorkerInMemory[]>;
}

/** Name, type and help. The docs are generated from this table. */
export const METRICS = {
  quern_requests_total: [
    "counter",
    "responses to predictions by status class; left: the client disconnected first",
  ],
  quern_request_duration_seconds: ["histogram", "time from a request's headers to the end of its response"],
  quern_queue_wait_seconds: ["histogram", "time until a replica got the request"],
  quern_requests_in_flight: ["gauge", "predictions that wait or run"],
  quern_queue_depth: ["gauge", "predictions that wait for a replica"],
  quern_requests_rejected_total: ["counter", "requests that the gateway refused, by error code"],
  quern_predictions_total: [
    "counter",
    "predictions by class, of APIs with monitoring.model_type classification",
  ],
  quern_replicas: ["gauge", "workers of real-time APIs, by state"],
  quern_replicas_wanted: ["gauge", "replicas that APIs should have"],
  quern_worker_restarts_total: ["counter", "workers of real-time APIs that ended unexpectedly"],
  quern_jobs: ["gauge", "jobs by API and status"],
  quern_batches_total: ["counter", "batches by API and outcome: succeeded, or failed attempts"],
  quern_jobs_oldest_queued_seconds: [
    "gauge",
    "how long the first job that has no worker yet has waited for one; 0 if there is none",
  ],
  quern_job_duration_seconds: [
    "histogram",
    "time from a job's submission, or the start of its round, to its end, by status; it survives restarts",
  ],
  ...WORKER_METRICS,
  quern_event_loop_delay_seconds: [
    "summary",
    "event loop delay of a process over its last busy minutes, by process and quantile (0.99, 1)",
  ],
  quern_dead_letters: ["gauge", "messages in dead letter queues, and those that wait for SQS"],
  ...SERVER_METRICS,
} as const satisfies Record<string, readonly [Family["type"], string]>;

type MetricName = keyof typeof METRICS;

export function metricsRoutes(deps: MetricsRoutesDeps): Hono {
  const app = new Hono();
  const metrics = new CoalescedAnswer(async () => new TextEncoder().encode(await metricsText(deps)));
  app.get(
    "/-/metrics",
    async () => new Response(await metrics.ask(), { headers: { "content-type": EXPOSITION_TYPE } }),
  );
  return app;
}

async function metricsText(deps: MetricsRoutesDeps): Promise<string> {
  const samples = {
    ...requestSamples(deps.reports),
    ...replicaSamples(deps.replicas),
    ...(await jobSamples(deps.jobs)),
    ...workerSamples(await deps.workersInMemory()),
    quern_event_loop_delay_seconds: loopsOf(deps).flatMap(loopSamples),
    ...(await serverSamples(deps)),
  };
  const families = (Object.keys(METRICS) as MetricName[]).map((name) => {
    const [type, help] = METRICS[name];
    return { name, type, help, samples: samples[name] };
  });
  return exposition(families);
}

export interface ProcessLoop extends LoopDelay {
  process: "controller" | "gateway";
}

/** The numbers of the slowest gateway stand for all of them. */
export function loopsOf({ loop, reports }: Pick<MetricsRoutesDeps, "loop" | "reports">): ProcessLoop[] {
  const gateways = reports.loops();
  const worst = (of: (one: LoopDelay) => number) => Math.max(0, ...gateways.map(of));
  return [
    { process: "controller", ...loop.read() },
    {
      process: "gateway",
      p99_ms: worst(({ p99_ms }) => p99_ms),
      max_ms: worst(({ max_ms }) => max_ms),
      longest_ms: worst(({ longest_ms }) => longest_ms),
    },
  ];
}

function loopSamples({ process, p99_ms, max_ms }: ProcessLoop): Sample[] {
  return [
    { labels: { process, quantile: "0.99" }, value: p99_ms / 1000 },
    { labels: { process, quantile: "1" }, value: max_ms / 1000 },
  ];
}

function requestSamples(reports: Reports) {
  const { tallies, inFlight, waiting } = reports.totals();
  const each = (samplesOf: (api: string, tally: Tally) => Sample[]) =>
    [...tallies].flatMap(([api, tally]) => samplesOf(api, tally));
  const histogram = (of: (tally: Tally) => Histogram) =>
    each((api, tally) => histogramSamples({ api }, DURATION_BOUNDS_S, of(tally).buckets, of(tally).sum_s));
  return {
    quern_requests_total: each((api, { answers }) =>
      counted(Object.entries(answers), (status) => ({ api, status })),
    ),
    quern_request_duration_seconds: histogram(({ duration }) => duration),
    quern_queue_wait_seconds: histogram(({ wait }) => wait),
    quern_requests_in_flight: counted(inFlight, (api) => ({ api })),
    quern_queue_depth: counted(waiting, (api) => ({ api })),
    quern_requests_rejected_total: each((api, { rejected }) =>
      counted(Object.entries(rejected), (reason) => ({ api, reason })),
    ),
    quern_predictions_total: each((api, { classes }) => counted(classes, (name) => ({ api, class: name }))),
  };
}

function replicaSamples(replicas: ApiReplicas) {
  const groups = replicas.names.map((api) => ({ api, group: replicas.group(api)! }));
  return {
    quern_replicas: groups.flatMap(({ api, group }) =>
      (["initializing", "ready", "draining"] as const).map((state) => ({
        labels: { api, state },
        value: group.workers.filter((worker) => worker.state === state).length,
      })),
    ),
    quern_replicas_wanted: groups.map(({ api, group }) => ({ labels: { api }, value: group.wanted })),
    quern_worker_restarts_total: groups.map(({ api }) => ({
      labels: { api },
      value: replicas.restarts(api),
    })),
  };
}

async function jobSamples(jobs: Jobs) {
  const { byApi, letters } = await jobs.records.totals();
  const batches = new Map<string, { succeeded: number; failed: number }>();
  for (const { api, succeeded, failed } of byApi) {
    const sum = batches.get(api) ?? { succeeded: 0, failed: 0 };
    batches.set(api, { succeeded: sum.succeeded + succeeded, failed: sum.failed + failed });
  }
  return {
    quern_jobs: byApi.map(({ api, status, jobs: value }) => ({ labels: { api, status }, value })),
    quern_batches_total: [...batches].flatMap(([api, counts]) =>
      counted(Object.entries(counts), (outcome) => ({ api, outcome })),
    ),
    quern_jobs_oldest_queued_seconds: oldestQueued(batches.keys(), jobs.queuedSince()),
    quern_job_duration_seconds: (await jobs.records.durations()).flatMap(
      ({ api, status, buckets, sumSeconds }) =>
        histogramSamples({ api, status }, JOB_DURATION_BOUNDS_S, buckets, sumSeconds),
    ),
    quern_dead_letters: letters.map(({ queue, messages }) => ({ labels: { queue }, value: messages })),
  };
}

function oldestQueued(apis: Iterable<string>, since: ReadonlyMap<string, string>): Sample[] {
  return [...apis].map((api) => {
    const first = since.get(api);
    const seconds = first === undefined ? 0 : Math.max(0, (wallMs() - Date.parse(first)) / 1000);
    return { labels: { api }, value: seconds };
  });
}

function counted(
  counts: Iterable<readonly [string, number]>,
  labels: (name: string) => Record<string, string>,
): Sample[] {
  return [...counts].map(([name, value]) => ({ labels: labels(name), value }));
}
