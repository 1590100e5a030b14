/** The rules for a configuration that depend on the other deployed APIs and on the machine. Pure. */
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
}

export function deploymentErrors(api: ParsedApi, { deployed, after, gpus }: Surroundings): FieldError[] {
  return [
    ...kindErrors(api, deployed),
    ...addressErrors(api, after),
    ...splitterErrors(api, after),
    ...gpuErrors(api, gpus),
  ];
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
