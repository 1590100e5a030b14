/** The numbers of `autoscaling` and `update_strategy`, with their defaults. */
import { describe, expect, it } from "vitest";
import { type DeployableConfig, readConfig } from "../../../src/apis/config/parse-config.ts";
import {
  firstReplicas,
  replicaConcurrency,
  scalingRules,
  updateStrategy,
} from "../../../src/apis/replicas/scaling-rules.ts";

function configOf(given: { autoscaling?: object; update_strategy?: object; predictor?: object }) {
  const predictor = { path: "predictor.py", ...given.predictor };
  const { apis, errors } = readConfig(JSON.stringify([{ name: "a", ...given, predictor }]), "quern.yaml");
  expect(errors).toEqual([]);
  return apis[0]!.config as DeployableConfig;
}

describe("the rules of scaling", () => {
  it("are the documented defaults if nothing is given", () => {
    expect(scalingRules(configOf({}))).toEqual({
      min: 1,
      max: 100,
      target: 1,
      windowMs: 60_000,
      downscaleAfterMs: 300_000,
      upscaleAfterMs: 60_000,
      maxDownscale: 0.75,
      maxUpscale: 1.5,
      downscaleTolerance: 0.05,
      upscaleTolerance: 0.05,
    });
  });

  it("are the given values", () => {
    const autoscaling = {
      min_replicas: 2,
      max_replicas: 7,
      target_replica_concurrency: 3.5,
      window: "30s",
      downscale_stabilization_period: "2m",
      upscale_stabilization_period: "20s",
      max_downscale_factor: 0.5,
      max_upscale_factor: 2,
      downscale_tolerance: 0.1,
      upscale_tolerance: 0.2,
    };
    expect(scalingRules(configOf({ autoscaling }))).toEqual({
      min: 2,
      max: 7,
      target: 3.5,
      windowMs: 30_000,
      downscaleAfterMs: 120_000,
      upscaleAfterMs: 20_000,
      maxDownscale: 0.5,
      maxUpscale: 2,
      downscaleTolerance: 0.1,
      upscaleTolerance: 0.2,
    });
  });

  it("target as many requests in flight as a replica has threads", () => {
    const predictor = { processes_per_replica: 3, threads_per_process: 4 };
    expect(scalingRules(configOf({ predictor })).target).toBe(12);
  });

  it("raise the default maximum to the minimum", () => {
    expect(scalingRules(configOf({ autoscaling: { min_replicas: 150 } })).max).toBe(150);
  });
});

describe("a new API", () => {
  it.each<[object, number]>([
    [{}, 1],
    [{ min_replicas: 0 }, 1],
    [{ min_replicas: 3 }, 3],
    [{ min_replicas: 0, init_replicas: 0 }, 0],
    [{ min_replicas: 1, init_replicas: 4 }, 4],
  ])("with autoscaling %j begins with %d replicas", (autoscaling, replicas) => {
    expect(firstReplicas(configOf({ autoscaling }))).toBe(replicas);
  });

  it.each<[object, number]>([
    [{}, 1024],
    [{ max_replica_concurrency: 8 }, 8],
  ])("with autoscaling %j has replicas that take %d requests", (autoscaling, requests) => {
    expect(replicaConcurrency(configOf({ autoscaling }))).toBe(requests);
  });
});

describe("a rollout's limits", () => {
  it.each<[object | undefined, number, number, number]>([
    [undefined, 4, 1, 1],
    [undefined, 5, 2, 1],
    [undefined, 1, 1, 0],
    [{ max_surge: 3, max_unavailable: 2 }, 5, 3, 2],
    [{ max_surge: "10%", max_unavailable: "50%" }, 5, 1, 2],
    [{ max_surge: 0, max_unavailable: "100%" }, 3, 0, 3],
    [{ max_surge: "0%", max_unavailable: 1 }, 3, 0, 1],
  ])("of %j for %d replicas are %d more and %d fewer", (update_strategy, replicas, surge, unavailable) => {
    const config = configOf(update_strategy === undefined ? {} : { update_strategy });
    expect(updateStrategy(config, replicas)).toEqual({ surge, unavailable });
  });
});
