/** Decides which APIs of a configuration are deployed, as which versions, and what the user is told. Pure. */
import { ServiceError } from "../../contracts/errors.ts";
import { endpointOf } from "../config/endpoints.ts";
import type { ParsedApi } from "../config/parse-config.ts";
import type { UnpackedProject } from "../projects/project-store.ts";
import { type AnyVersion, identityOf } from "../records/api-rows.ts";

/** An API of the configuration, before it is known to be valid. */
export interface Candidate {
  api: ParsedApi;
  /** The version that is deployed under the same name. */
  deployed: AnyVersion | undefined;
  /** The files of the new version. */
  files: Pick<UnpackedProject, "project_id" | "directory">;
}

export interface DeployedApi {
  api: string;
  kind: AnyVersion["config"]["kind"] | "Application";
  api_id: string;
  message: string;
  /** The API's address, as a path. */
  endpoint: string;
}

/** The change that a deployment makes to one API. */
export interface PlannedApi {
  api: ParsedApi;
  ids: Pick<AnyVersion, "api_id" | "predictor_id" | "project_id">;
  isUnchanged: boolean;
  answer: DeployedApi;
}

/** `only`: an empty list means all. */
export function selectApis(apis: ParsedApi[], only: readonly string[]): ParsedApi[] {
  const names = apis.map((api) => api.config.name);
  const missing = only.filter((name) => !names.includes(name));
  if (missing.length > 0)
    throw new ServiceError(
      "invalid_request",
      `the configuration has no API ${missing.join(", ")}; it has ${names.join(", ")}`,
    );
  return only.length === 0 ? apis : apis.filter((api) => only.includes(api.config.name));
}

export function planApi({ api, deployed, files }: Candidate): PlannedApi {
  const { config, configText } = api;
  const project_id = projectOf(config, files.project_id);
  const ids = { ...identityOf(config, configText, project_id), project_id };
  const { name, kind } = config;
  const message = messageOf(config, deployed?.api_id, ids.api_id);
  const answer = { api: name, kind, api_id: ids.api_id, message, endpoint: endpointOf(config) };
  return { api, ids, isUnchanged: deployed?.api_id === ids.api_id, answer };
}

/** A splitter has no files of the project, so file changes do not affect it. */
function projectOf({ kind }: ParsedApi["config"], projectId: string): string {
  return kind === "TrafficSplitter" ? "" : projectId;
}

/** Uses Cortex's messages: a batch API is ready at once, a real-time one is only starting. */
function messageOf(
  { name, kind }: ParsedApi["config"],
  currentId: string | undefined,
  newId: string,
): string {
  if (currentId === newId) return `${name} is up to date`;
  const verb = currentId === undefined ? "creat" : "updat";
  return `${verb}${kind === "RealtimeAPI" ? "ing" : "ed"} ${name} (${kind})`;
}
