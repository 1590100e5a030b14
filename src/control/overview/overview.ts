/** The overview: the server, its APIs, the newest jobs and what needs attention, read without reading all jobs. */
import { type ApiHealth, healthOf } from "../../apis/api-health.ts";
import type { ApiState } from "../../apis/api-state.ts";
import type { RecentTraffic, Traffic } from "../../apis/traffic/recent-traffic.ts";
import { timestamp, wallMs } from "../../base/clock.ts";
import type { FilledQueue } from "../../batch/letters/queue-counts.ts";
import type { Queues } from "../../batch/letters/queues.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { jobStatus } from "../../batch/records/read-job.ts";
import type { OverviewApi, OverviewJob, OverviewShown } from "../../contracts/http/overview-operations.ts";
import {
  ATTENTION_JOBS_MAX,
  ATTENTION_QUEUES_EVERY_MS,
  ATTENTION_QUEUES_MAX,
  OVERVIEW_JOBS_MAX,
} from "../../contracts/limits/responses.ts";
import { outOfReach } from "../answers/shortages.ts";
import { faultsOfServer, type HealthRoutesDeps } from "../health.ts";
import { ownProcesses } from "../own-processes.ts";
import { attentionOf, LONG_MS, type Troubles, troubleOf } from "./attention.ts";
import { JobRates } from "./job-rates.ts";
import { RequestVerdicts, type Verdicts } from "./request-verdicts.ts";

const DAY_MS = 86_400_000;

export interface OverviewDeps extends HealthRoutesDeps {
  queues: Queues;
}

type TrafficNow = ReturnType<RecentTraffic["read"]>;

interface SeenApi {
  state: ApiState;
  isCrashing: boolean;
  health: ApiHealth;
  pausedTime: string | undefined;
}

export class Overview {
  private readonly deps: OverviewDeps;
  private readonly rates = new JobRates();
  private readonly verdicts: RequestVerdicts;
  private readonly seen = new Map<string, SeenApi>();
  private readonly known = new Map<string, { shown: OverviewApi; state: ApiState; traffic: Traffic }>();
  private queues: { filled: FilledQueue[]; atMs: number } | undefined;
  private startedTime: string | undefined;
  private last: OverviewShown | undefined;

  constructor(deps: OverviewDeps, verdicts: Verdicts) {
    this.deps = deps;
    this.verdicts = new RequestVerdicts(deps, verdicts);
  }

  /** While the database cannot be reached: what was known last, and why it is old. */
  async compute(): Promise<OverviewShown> {
    const why = this.deps.databaseFault();
    if (why === undefined) {
      this.last = await this.read();
      return this.last;
    }
    const reason = `the database cannot be reached: ${why}`;
    if (this.last === undefined) throw outOfReach(reason);
    const { server } = this.last;
    return { ...this.last, time: timestamp(), server: { ...server, status: "degraded", reasons: [reason] } };
  }

  private async read(): Promise<OverviewShown> {
    const { jobs, version, compute } = this.deps;
    const { found } = jobs;
    const traffic = this.deps.reports.traffic.read(performance.now());
    const apis = await this.readApis();
    const reasons = await this.serverFaults();
    const running = await found.unfinishedByApi();
    const rows = await found.newestUnfinished(OVERVIEW_JOBS_MAX);
    const counts = await found.countByStatus();
    const shownJobs = this.shownJobs(rows);
    const requests = this.verdicts.read(traffic.byApi, performance.now());
    const attention = await this.attention({ apis, server: reasons, running: shownJobs, ...requests });
    const all = [...reasons, ...apis.flatMap(({ health }) => health.fault ?? [])];
    return {
      time: timestamp(),
      server: {
        ...{ version, started_time: this.started() },
        ...{ status: all.length === 0 ? "ok" : "degraded", reasons: all },
      },
      compute: compute(),
      apis: this.shownApis(apis, running, traffic, requests),
      jobs: shownJobs,
      job_counts: Object.fromEntries(
        [...counts].map(([status, count]) => [status.replace("status_", ""), count]),
      ),
      attention,
    };
  }

  private async readApis(): Promise<SeenApi[]> {
    const { apis, jobs, replicas } = this.deps;
    const paused = await jobs.found.pausedApis();
    const states = await apis.deployed.list();
    return states.map((state) =>
      this.seenApi(state, replicas.isCrashing(state.name), paused.get(state.name)),
    );
  }

  /** The same object as before if nothing has changed: most of hundreds of APIs, each second. */
  private seenApi(state: ApiState, isCrashing: boolean, pausedTime: string | undefined): SeenApi {
    const former = this.seen.get(state.name);
    if (former?.state === state && former.isCrashing === isCrashing && former.pausedTime === pausedTime)
      return former;
    const seen = { state, isCrashing, health: healthOf(state, isCrashing), pausedTime };
    this.seen.set(state.name, seen);
    return seen;
  }

  private async serverFaults(): Promise<string[]> {
    const { diskFault, gateways } = this.deps;
    return faultsOfServer(await diskFault(), gateways()).map(({ detail }) => detail);
  }

  private async attention(known: Omit<Troubles, "nowMs" | "waiting" | "ended" | "queues">) {
    const { jobs } = this.deps;
    const nowMs = wallMs();
    const before = (ms: number) => new Date(nowMs - ms).toISOString();
    return attentionOf({
      ...known,
      nowMs,
      waiting: jobs
        .queuedBefore(before(LONG_MS), ATTENTION_JOBS_MAX)
        .map((job) => ({ ...job, waiting: jobs.waiting(job.job_id, true) })),
      ended: await jobs.found.endedBadly(before(DAY_MS), ATTENTION_JOBS_MAX),
      queues: await this.filledQueues(),
    });
  }

  private async filledQueues(): Promise<FilledQueue[]> {
    const { queues } = this;
    if (queues !== undefined && performance.now() - queues.atMs < ATTENTION_QUEUES_EVERY_MS)
      return queues.filled;
    const filled = await this.deps.queues.filled(ATTENTION_QUEUES_MAX);
    this.queues = { filled, atMs: performance.now() };
    return filled;
  }

  private shownApis(
    apis: readonly SeenApi[],
    running: ReadonlyMap<string, number>,
    { idle, byApi }: TrafficNow,
    requests: Pick<Troubles, "failing" | "slow">,
  ): OverviewApi[] {
    const names = new Set(apis.map(({ state }) => state.name));
    for (const kept of [this.known, this.seen])
      for (const name of kept.keys()) if (!names.has(name)) kept.delete(name);
    return apis.map((api) => {
      const { name, kind } = api.state;
      const jobs = kind === "BatchAPI" ? (running.get(name) ?? 0) : null;
      return this.shownApi(api, jobs, byApi.get(name) ?? idle, troubleOf(name, requests));
    });
  }

  /** The same object as before if nothing has changed. */
  private shownApi(
    { state, pausedTime: paused }: SeenApi,
    jobs: number | null,
    traffic: Traffic,
    trouble: OverviewApi["trouble"],
  ): OverviewApi {
    const { name, status, requested_replicas } = state;
    const message = state.message ?? null;
    const pausedTime = paused ?? null;
    const former = this.known.get(name);
    const isElseSame =
      former?.traffic === traffic &&
      former.shown.paused_time === pausedTime &&
      former.shown.running_jobs === jobs &&
      former.shown.trouble === trouble;
    // Without replicas: one with them has another state each time.
    if (isElseSame && former.state === state) return former.shown;
    const group = this.deps.replicas.group(name);
    const isEmpty = group === undefined || group.workers.length === 0;
    const ready = isEmpty ? 0 : Math.floor(group.serving.length / group.perReplica);
    const isSame =
      isElseSame &&
      former.state.api_id === state.api_id &&
      former.state.last_updated === state.last_updated &&
      former.shown.status === status &&
      former.shown.message === message &&
      former.shown.ready_replicas === ready &&
      former.shown.requested_replicas === requested_replicas;
    if (isSame) return former.shown;
    const { kind, api_id, last_updated } = state;
    const shown: OverviewApi = {
      ...{ name, kind, api_id, status, message, ready_replicas: ready, requested_replicas },
      ...{ paused_time: pausedTime, running_jobs: jobs, last_updated },
      ...traffic,
      trouble,
    };
    this.known.set(name, { shown, state, traffic });
    return shown;
  }

  private shownJobs(rows: readonly JobRow[]): OverviewJob[] {
    const seen = rows.map((row) => ({ job_id: row.job_id, settled: row.succeeded + row.failed_batches }));
    const rates = this.rates.note(seen, performance.now());
    return rows.map((row) => this.shownJob(row, rates.get(row.job_id) ?? null));
  }

  private shownJob(row: JobRow, batches_per_s: number | null): OverviewJob {
    const { jobs } = this.deps;
    const { job_id, api_name, created_time, workers, succeeded, total_batch_count, paused_time } = row;
    const counts = jobs.workerCounts(job_id);
    const live = { counts, waiting: jobs.waiting(job_id, true) };
    const shown = jobStatus(row, "", live);
    const { status, batches_in_queue: in_queue, waiting = null, round_time = null } = shown;
    // While it enqueues, nobody knows how much is left.
    const isKnown = total_batch_count !== null && batches_per_s !== null && batches_per_s > 0;
    return {
      ...{ job_id, api_name, status, created_time, round_time, total_batch_count, succeeded },
      ...{ failed: row.failed_batches, in_queue, workers, running_workers: counts.running, batches_per_s },
      eta_s: isKnown ? Math.round(in_queue / batches_per_s) : null,
      ...{ waiting, paused_time },
    };
  }

  /** When the server started, whatever has become of its controllers. */
  private started(): string {
    if (this.startedTime !== undefined) return this.startedTime;
    const parent = ownProcesses(this.deps.parentPid).find(({ process }) => process === "parent");
    const ms = parent === undefined ? wallMs() - process.uptime() * 1000 : parent.startSeconds * 1000;
    this.startedTime = new Date(ms).toISOString();
    return this.startedTime;
  }
}
