/** Gathers what an explanation needs to know about the requests of an API. */
import type { ApiVersion } from "../../apis/records/api-rows.ts";
import { timeoutMsOf } from "../../apis/replicas/start-worker.ts";
import { wallMs } from "../../base/clock.ts";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../../contracts/limits/predictions.ts";
import type { Switched, TrafficFacts } from "../../explain/api/api-facts.ts";
import { areMost, judgeFailures } from "../../explain/api/judge-failures.ts";
import { changesIn } from "../../series/change-rows.ts";
import type { ExplainDeps } from "./explain-deps.ts";
import { loggedExceptions } from "./logged-exceptions.ts";

export async function withExceptions(deps: ExplainDeps, version: ApiVersion): Promise<TrafficFacts> {
  const facts = trafficFacts(deps, version.name, version);
  if ((facts.tally.answers["5xx"] ?? 0) === 0) return facts;
  const switched = facts.switched && { ...facts.switched, ...(await howSwitched(deps, version)) };
  // The log also has the exceptions of the version before.
  const time =
    switched === undefined || switched.failed === 0
      ? undefined
      : { fromS: switched.atS, toS: Number.POSITIVE_INFINITY };
  const exceptions = await loggedExceptions(deps.apiLogDirectory(version.name), time);
  return { ...facts, exceptions, switched };
}

async function howSwitched(
  { series, databaseFault }: ExplainDeps,
  { name, api_id, deployed_time }: ApiVersion,
): Promise<Pick<Switched, "how" | "ids">> {
  if (databaseFault() !== undefined) return { how: "deployed", ids: undefined };
  const atS = Date.parse(deployed_time) / 1000;
  const changes = await changesIn(series.db, name, { fromS: atS - 2, toS: atS + 2 });
  const change = changes.findLast(({ kind, detail }) => kind !== "replica_ended" && detail === api_id);
  const former = change?.former ?? undefined;
  return {
    how: change?.kind === "rolled_back" ? "rolled_back" : "deployed",
    ids: former === undefined ? undefined : { version: api_id, former },
  };
}

/** What is in memory: without the exceptions in the log. `version`: undefined of an API without replicas. */
export function trafficFacts(deps: ExplainDeps, name: string, version?: ApiVersion): TrafficFacts {
  const nowMs = performance.now();
  const sinceMs = (time: string) => wallMs() - Date.parse(time);
  const recent = deps.recent.of(name, nowMs, version && nowMs - sinceMs(version.deployed_time));
  const facts = {
    ...{ ...recent, exceptions: [], wereMost: deps.recent.mostFail.has(name) },
    timeoutS: ((version && timeoutMsOf(version)) ?? PREDICTION_TIMEOUT_DEFAULT_MS) / 1000,
    lastFailures: lastFailuresOf(deps, name),
    switched: switchedOf(deps, version, recent.seconds, nowMs),
  };
  const { failed, all } = judgeFailures(facts);
  deps.recent.noteMost(name, areMost(failed, all, facts.wereMost));
  return facts;
}

/** Undefined if it is older than the requests that are judged. */
function switchedOf(
  { reports }: ExplainDeps,
  version: ApiVersion | undefined,
  seconds: number,
  nowMs: number,
): Switched | undefined {
  const since = version && reports.traffic.sinceSwitch(version.name);
  if (version === undefined || since === undefined) return undefined;
  const agoMs = nowMs - since.atMs;
  const deployedMs = Date.parse(version.deployed_time);
  // A still newer one has been deployed, and does not serve alone yet.
  const isOfFormer = wallMs() - agoMs < deployedMs;
  if (isOfFormer || agoMs > seconds * 1000) return undefined;
  const { requests, failed } = since;
  return { how: "deployed", ids: undefined, atS: deployedMs / 1000, requests, failed };
}

function lastFailuresOf({ reports }: ExplainDeps, name: string): TrafficFacts["lastFailures"] {
  const last = reports.traffic.lastFailures(name);
  if (last === undefined) return undefined;
  const agoS = (performance.now() - last.atMs) / 1000;
  return { atS: wallMs() / 1000 - agoS, agoS, requestsSince: last.requestsSince };
}
