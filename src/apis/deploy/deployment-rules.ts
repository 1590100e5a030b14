/** The rules for a configuration that depend on the other deployed APIs and on the machine. Pure. */
import { CLUSTER_KEYS, type ClusterKey, clusterKeyCure } from "../../contracts/config/cluster-keys.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { conflictOf, endpointOf } from "../config/endpoints.ts";
import type { ParsedApi } from "../config/parse-config.ts";
import type { AnyVersion } from "../records/api-rows.ts";

export interface Surroundings {
  /** The version that is deployed under the same name. */
  deployed: AnyVersion | undefined;
  /** The APIs that will be deployed afterwards. */
  after: readonly ParsedApi["config"][];
  /** How many GPUs this machine has. */
  gpus: number;
  /** Where replicas of real-time APIs run. */
  engine: "local" | "kubernetes";
}

export function deploymentErrors(
  api: ParsedApi,
  { deployed, after, gpus, engine }: Surroundings,
): FieldError[] {
  return [
    ...kindErrors(api, deployed),
    ...addressErrors(api, after),
    ...splitterErrors(api, after),
    ...(engine === "kubernetes" ? podErrors(api) : [...placementErrors(api), ...gpuErrors(api, gpus)]),
  ];
}

/** What workers in pods do not do, and what to do instead. */
const NOT_IN_PODS = {
  python: "the worker's image decides which Python runs: leave it out, and build the image with that Python",
  reuse_worker: "a pod belongs to one job: leave it out",
} as const;
/** Which of them each kind may not have. */
const NOT_IN_PODS_OF = {
  RealtimeAPI: ["python"],
  BatchAPI: ["python", "reuse_worker"],
} as const;

function podErrors({ config, positionOf }: ParsedApi): FieldError[] {
  if (config.kind === "TrafficSplitter") return [];
  const { predictor, name } = config;
  const keys: readonly (keyof typeof NOT_IN_PODS)[] = NOT_IN_PODS_OF[config.kind];
  return keys
    .filter((key) => predictor[key] !== undefined)
    .map((key) => {
      const detail = `${name}: predictor.${key}: is not there yet with --engine kubernetes: ${NOT_IN_PODS[key]}`;
      return { pointer: positionOf(["predictor", key]), detail };
    });
}

/** Only a cluster has nodes to choose among, images and Secrets. */
function placementErrors({ config, positionOf }: ParsedApi): FieldError[] {
  if (config.kind === "TrafficSplitter") return [];
  const { compute, name } = config;
  const keys = Object.keys(CLUSTER_KEYS) as ClusterKey[];
  return keys
    .filter((key) => compute[key] !== undefined)
    .map((key) => {
      const pointer = positionOf(["compute", key]);
      return { pointer, detail: `${name}: compute.${key}: ${clusterKeyCure(key)}` };
    });
}

function kindErrors(
  { config, hasKind, positionOf }: ParsedApi,
  deployed: AnyVersion | undefined,
): FieldError[] {
  if (deployed === undefined || !hasKind || deployed.config.kind === config.kind) return [];
  const detail = `${config.name}: kind: cannot change from ${deployed.config.kind} while deployed; delete the API first`;
  return [{ pointer: positionOf(["kind"]), detail }];
}

function addressErrors({ config, positionOf }: ParsedApi, after: Surroundings["after"]): FieldError[] {
  const other = conflictOf(config, after);
  if (other === undefined) return [];
  const detail = `${config.name}: networking.endpoint: ${endpointOf(config)} conflicts with ${other.name} at ${endpointOf(other)}; give one of them another address`;
  return [{ pointer: positionOf(["networking", "endpoint"]), detail }];
}

/** The APIs of a splitter must be in the same file, or already deployed. */
function splitterErrors({ config, positionOf }: ParsedApi, after: Surroundings["after"]): FieldError[] {
  if (config.kind !== "TrafficSplitter") return [];
  return config.apis.flatMap(({ name }, at) => {
    const kind = after.find((other) => other.name === name)?.kind;
    if (kind === "RealtimeAPI") return [];
    const what = kind === undefined ? "is not deployed, and not in this file" : `is a ${kind}`;
    const detail = `${config.name}: apis.${at}.name: ${name} ${what}; a TrafficSplitter sends to RealtimeAPIs`;
    return [{ pointer: positionOf(["apis", at]), detail }];
  });
}

function gpuErrors({ config, positionOf }: ParsedApi, gpus: number): FieldError[] {
  if (config.kind === "TrafficSplitter" || config.compute.gpu <= gpus) return [];
  const has = gpus === 0 ? "no GPU" : `${gpus} GPU${gpus === 1 ? "" : "s"}`;
  const detail = `${config.name}: compute.gpu: ${config.compute.gpu} requested, but this server offers ${has} (see nvidia-smi, or \`quern up --gpus\`); remove the key, or deploy to a machine that has enough`;
  return [{ pointer: positionOf(["compute", "gpu"]), detail }];
}
