/** The numbers of `autoscaling` and `update_strategy` with their defaults. */
import type { ApiConfig } from "../../contracts/config/apis.ts";
import { parseDurationMs } from "../../contracts/config/durations.ts";
import { MAX_REPLICAS_DEFAULT } from "../../contracts/limits/configuration.ts";
import { REPLICA_CONCURRENCY_DEFAULT } from "../../contracts/limits/predictions.ts";
import type { DeployableConfig } from "../config/parse-config.ts";
import type { ScalingRules } from "./autoscaler.ts";

export function scalingRules({ autoscaling, predictor }: DeployableConfig): ScalingRules {
  const { processes_per_replica: processes, threads_per_process: threads } = predictor;
  const { min_replicas: min } = autoscaling;
  const durationMs = (text: string | undefined, otherwise: string) => parseDurationMs(text ?? otherwise)!;
  return {
    min,
    max: Math.max(autoscaling.max_replicas ?? MAX_REPLICAS_DEFAULT, min),
    target: autoscaling.target_replica_concurrency ?? processes * threads,
    windowMs: durationMs(autoscaling.window, "60s"),
    downscaleAfterMs: durationMs(autoscaling.downscale_stabilization_period, "5m"),
    upscaleAfterMs: durationMs(autoscaling.upscale_stabilization_period, "1m"),
    maxDownscale: autoscaling.max_downscale_factor ?? 0.75,
    maxUpscale: autoscaling.max_upscale_factor ?? 1.5,
    downscaleTolerance: autoscaling.downscale_tolerance ?? 0.05,
    upscaleTolerance: autoscaling.upscale_tolerance ?? 0.05,
  };
}

/** The replica count of a new API. */
export function firstReplicas({ autoscaling }: DeployableConfig): number {
  return autoscaling.init_replicas ?? Math.max(autoscaling.min_replicas, 1);
}

/** Requests that one replica accepts, over all its processes. */
export function replicaConcurrency({ autoscaling }: Pick<ApiConfig, "autoscaling">): number {
  return autoscaling.max_replica_concurrency ?? REPLICA_CONCURRENCY_DEFAULT;
}

/** `max_surge` and `max_unavailable` in replicas. A percentage is rounded up for surge and down for unavailable. */
export function updateStrategy(
  { update_strategy }: DeployableConfig,
  replicas: number,
): { surge: number; unavailable: number } {
  return {
    surge: partOf(update_strategy?.max_surge ?? "25%", replicas, Math.ceil),
    unavailable: partOf(update_strategy?.max_unavailable ?? "25%", replicas, Math.floor),
  };
}

function partOf(setting: number | string, replicas: number, round: (exact: number) => number): number {
  return typeof setting === "number" ? setting : round((Number.parseInt(setting, 10) / 100) * replicas);
}
