/** Gathers what an explanation of an API needs: its replicas, its requests, its jobs. It changes nothing. */
import type { ApiState } from "../../apis/api-state.ts";
import { isSplitter } from "../../apis/records/api-rows.ts";
import { scalingRules } from "../../apis/replicas/scaling-rules.ts";
import { computeOf, lifetimeOf } from "../../apis/replicas/start-worker.ts";
import type { ServedApi } from "../../apis/serving/api-replicas.ts";
import { wallMs } from "../../base/clock.ts";
import type { ApiFacts, RolloutFacts } from "../../explain/api/api-facts.ts";
import { explainApi } from "../../explain/api/explain-api.ts";
import type { ServerFacts } from "../../explain/facts.ts";
import type { Finding } from "../../explain/finding.ts";
import { explainJob } from "../../explain/job/explain-job.ts";
import type { Amount } from "../../explain/words.ts";
import type { ExplainDeps } from "./explain-deps.ts";
import { jobFacts } from "./job-facts.ts";
import { withExceptions } from "./traffic-facts.ts";

/** Jobs of a batch API that its explanation looks at. */
const JOBS_EXPLAINED = 3;

export async function serverFacts(deps: ExplainDeps): Promise<ServerFacts> {
  return {
    databaseFault: deps.databaseFault(),
    diskFault: await deps.diskFault(),
    gateways: deps.gateways(),
  };
}

/** Throws `api_not_found`. */
export async function apiFacts(deps: ExplainDeps, name: string): Promise<ApiFacts> {
  const state = await deps.apis.deployed.get(name);
  const facts = await knownFacts(deps, name);
  return {
    ...facts,
    ...{ kind: state.kind, status: state.status, unreadable: await unreadable(deps, name) },
    traffic: state.kind === "BatchAPI" ? undefined : facts.traffic,
    jobs: state.kind === "BatchAPI" ? await jobsOf(deps, state) : undefined,
    targets: state.kind === "TrafficSplitter" ? await targetsOf(deps, name) : [],
    troubles: state.kind === "BatchAPI" ? [] : await deps.pasts.of(name, wallMs() / 1000),
  };
}

/** What is known without the database. */
export async function knownFacts(deps: ExplainDeps, name: string): Promise<ApiFacts> {
  const group = deps.replicas.group(name);
  return {
    name,
    ...{ kind: "RealtimeAPI", status: "", unreadable: undefined },
    server: await serverFacts(deps),
    compute: deps.account(),
    rollout: group === undefined ? undefined : rolloutFacts(deps, group),
    traffic: group === undefined ? undefined : await withExceptions(deps, group.version),
    jobs: undefined,
    targets: [],
    troubles: [],
  };
}

async function unreadable({ apis }: ExplainDeps, name: string): Promise<string | undefined> {
  const version = await apis.deployed.version(name).catch((error: Error) => error);
  return version instanceof Error ? version.message : undefined;
}

export function rolloutFacts(deps: ExplainDeps, group: ServedApi): RolloutFacts {
  const { version, failure, failureKind, workers, perReplica } = group;
  const { name, predictor_id } = version;
  const { min, max, target } = scalingRules(version.config);
  const { predictor } = version.config;
  const memory = deps.memoryOfWorkers();
  const installingMs = deps.apis.deployed.installingMsOf(version);
  return {
    ...{ wanted: group.wanted, upToDate: group.upToDate, because: group.wantedBecause, min, max, target },
    parallel: perReplica * (predictor.server_side_batching?.max_batch_size ?? predictor.threads_per_process),
    failure: failure === undefined ? undefined : { kind: failureKind, message: failure },
    lacks: group.lack === undefined ? undefined : times(amountOf(computeOf(version)), perReplica),
    isCrashing: deps.replicas.isCrashing(name),
    ...{ restarts: deps.replicas.restarts(name), lastExit: group.lastExit },
    installingS:
      group.upToDate < group.wanted && installingMs !== undefined ? installingMs / 1000 : undefined,
    startupTimeoutS: lifetimeOf(version).startup.ms / 1000,
    replicas: workers.map((worker) => ({
      ...{ id: worker.identity.worker_id, state: worker.state, isNew: worker.predictor_id === predictor_id },
      ageS: (performance.now() - worker.startedMs) / 1000,
      memory: memory.get(worker.identity.worker_id),
    })),
  };
}

async function jobsOf(deps: ExplainDeps, { name }: ApiState): Promise<ApiFacts["jobs"]> {
  const { apis, jobs } = deps;
  const { running_jobs, paused_time } = await jobs.records.summary(name);
  const version = await apis.deployed.findVersion(name);
  const installingMs = version === undefined ? undefined : apis.deployed.installingMsOf(version);
  return {
    ...{ pausedTime: paused_time ?? undefined, running: running_jobs },
    installingS: installingMs === undefined ? undefined : installingMs / 1000,
    findings: await newestJobs(deps, name),
  };
}

const OUTLINE = { mayNameOthers: true, countsFailures: false };

/** What is wrong with the newest jobs, each with the name of its job. */
async function newestJobs(deps: ExplainDeps, name: string): Promise<Finding[]> {
  const pages = deps.jobs.records.list(name, { limit: JOBS_EXPLAINED, before: undefined, status: undefined });
  const findings: Finding[] = [];
  for (let page = await pages.next(); !page.done; page = await pages.next())
    for (const row of page.value) {
      const [first] = explainJob(await jobFacts(deps, row, OUTLINE)).findings;
      if (first === undefined || first.severity === "info" || first.cause === "api_paused") continue;
      const title = `Job ${row.job_id}: ${first.title}`;
      findings.push({ ...first, title, command: `quern explain ${name} ${row.job_id}` });
    }
  return findings;
}

async function targetsOf(deps: ExplainDeps, name: string): Promise<ApiFacts["targets"]> {
  const version = await deps.apis.deployed.findVersion(name);
  if (version === undefined || !isSplitter(version)) return [];
  const targets: ApiFacts["targets"][number][] = [];
  for (const { name: target, weight } of version.config.apis) {
    const facts = { ...(await apiFacts(deps, target)), server: HEALTHY };
    targets.push({ name: target, weight, findings: explainApi(facts).findings });
  }
  return targets;
}

/** The server is explained once. */
const HEALTHY: ServerFacts = {
  ...{ databaseFault: undefined, diskFault: undefined },
  gateways: { wanted: 0, connected: 0 },
};

/** `memoryBytes` and `cpuMillis` as the account has them. */
export function amountOf({
  cpuMillis,
  memoryBytes,
  gpus,
}: {
  cpuMillis: number;
  memoryBytes: number;
  gpus: number;
}): Amount {
  return { cpus: cpuMillis / 1000, memoryBytes, gpus };
}

function times({ cpus, memoryBytes, gpus }: Amount, count: number): Amount {
  return { cpus: cpus * count, memoryBytes: memoryBytes * count, gpus: gpus * count };
}
