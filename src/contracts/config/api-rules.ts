/**
 * Rules between the fields of an API's configuration, as pure functions. The schema has the rules of each field alone.
 */

import { MAX_REPLICAS_DEFAULT } from "../limits/configuration.ts";
import { outputPathProblem } from "../store-paths.ts";
import type { ApiConfig, SplitApi } from "./apis.ts";

export interface RuleFault {
  path: readonly string[];
  detail: string;
}

export function ruleFaults(api: ApiConfig): RuleFault[] {
  const faults: RuleFault[] = [];
  const check = (isBroken: boolean, path: readonly string[], detail: string) => {
    if (isBroken) faults.push({ path, detail });
  };
  const { autoscaling, predictor, compute, update_strategy } = api;
  const { min_replicas: min, init_replicas: init, target_replica_concurrency: target } = autoscaling;
  const max = autoscaling.max_replicas ?? Math.max(min, MAX_REPLICAS_DEFAULT);
  check(max < min, ["autoscaling", "max_replicas"], `must not be below min_replicas (${min})`);
  check(
    init !== undefined && (init < min || init > max),
    ["autoscaling", "init_replicas"],
    `must be from min_replicas (${min}) to max_replicas (${max})`,
  );
  const concurrency = autoscaling.max_replica_concurrency;
  check(
    target !== undefined && concurrency !== undefined && target > concurrency,
    ["autoscaling", "target_replica_concurrency"],
    `must not be above max_replica_concurrency (${concurrency})`,
  );
  const outputProblem = outputPathProblem(api.output?.store_path);
  check(outputProblem !== undefined, ["output", "store_path"], outputProblem ?? "");
  const processes = predictor?.processes_per_replica ?? 1;
  check(
    compute.gpu % processes !== 0,
    ["compute", "gpu"],
    `${compute.gpu} cannot be divided among ${processes} processes; make it a multiple of predictor.processes_per_replica, or use threads or replicas`,
  );
  const isNone = (setting: unknown) => setting === 0 || setting === "0%";
  check(
    isNone(update_strategy?.max_surge) && isNone(update_strategy?.max_unavailable),
    ["update_strategy"],
    "max_surge and max_unavailable cannot both be 0, because nothing could be updated",
  );
  if (api.kind === "TrafficSplitter") return [...faults, ...splitterFaults(api.apis ?? [])];
  check(
    api.kind !== "BatchAPI" && predictor?.reuse_worker !== undefined,
    ["predictor", "reuse_worker"],
    "is for a BatchAPI: replicas of a real-time API keep their process anyway",
  );
  if (api.kind !== "BatchAPI") return faults;
  for (const name of ["processes_per_replica", "threads_per_process"] as const) {
    check(
      (predictor?.[name] ?? 1) !== 1,
      ["predictor", name],
      "must be 1 for a BatchAPI; raise a job's `workers` instead",
    );
  }
  return faults;
}

function splitterFaults(apis: readonly SplitApi[]): RuleFault[] {
  const faults: RuleFault[] = [];
  const sum = apis.filter(({ shadow }) => !shadow).reduce((total, { weight }) => total + weight, 0);
  if (apis.length === 0) faults.push({ path: ["apis"], detail: "is required: the APIs with their weights" });
  else if (sum !== 100)
    faults.push({ path: ["apis"], detail: `expected weights to sum to 100 but found ${sum}` });
  if (apis.filter(({ shadow }) => shadow).length > 1)
    faults.push({ path: ["apis"], detail: "at most one of them can be the shadow" });
  const names = apis.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) faults.push({ path: ["apis"], detail: `${twice} is named twice` });
  return faults;
}
