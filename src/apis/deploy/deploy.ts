/**
 * Deploys the content of an archive. Everything is checked before anything is changed
 * (docs/contract/configuration.md#configuration-errors).
 */
import type { Readable } from "node:stream";
import { timestamp } from "../../base/clock.ts";
import { projectDirectory } from "../../contracts/data-layout.ts";
import { type FieldError, ServiceError } from "../../contracts/errors.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import type { Database } from "../../database/database.ts";
import { condaErrors } from "../config/former-files.ts";
import { invalid, type ParsedApi } from "../config/parse-config.ts";
import { readLongConfig } from "../config/read-config.ts";
import { type UnpackedProject, unpackProject } from "../projects/project-store.ts";
import type { ProjectSweep } from "../projects/project-sweep.ts";
import { type AnyVersion, allCurrent } from "../records/api-rows.ts";
import { saveVersion } from "../records/save-version.ts";
import { type PredictorCheckOptions, PredictorChecks } from "./check-predictor.ts";
import { deploymentErrors } from "./deployment-rules.ts";
import { type Candidate, type DeployedApi, type PlannedApi, planApi, selectApis } from "./plan-deployment.ts";

export interface DeployDeps extends PredictorCheckOptions {
  db: Database;
  dataDir: string;
  /** How many GPUs this machine has. */
  gpus: number;
  /** Where replicas of real-time APIs run. */
  engine: "local" | "kubernetes";
  projects: ProjectSweep;
}

/** Deploys an application if the configuration is one's `app.yaml`; undefined if it is a list of APIs. */
export type DeployApplication = (
  project: UnpackedProject,
  request: DeployRequest,
) => Promise<{ name: string; message: string } | { errors: FieldError[] } | undefined>;

export interface DeployRequest {
  /** A key, or a client's address. Senders of long configurations take turns. */
  sender: string;
  /** Is kept with the versions. */
  by: DoneBy;
  archive: Readable;
  /**
   * Called when the whole archive is here, before it is used. Throws if the sender is no longer permitted to deploy.
   */
  onReceived: () => void;
  /** As the user calls the file, for messages. */
  configFile: string;
  /** Deploy only these APIs; an empty list means all. */
  only: readonly string[];
  /** Validate everything, change nothing. */
  dryRun: boolean;
  /** The environment of an application. */
  environment: string;
  /**
   * Cancels a deployment in progress: the replicas that are still starting, and the running stages of an application.
   */
  force: boolean;
}

/** The part of a request that applies to a configuration without files too. */
export type ConfigRequest = Omit<DeployRequest, "archive" | "onReceived" | "environment">;

interface Source {
  configText: string;
  /** Errors of the project as a whole. */
  errors: readonly FieldError[];
  /** The files of one API, whose current version is `deployed`. */
  filesOf: (api: ParsedApi, deployed: AnyVersion | undefined) => Promise<Candidate["files"]>;
  /** Makes the files durable before a version names them. */
  keep: () => Promise<void>;
}

export function deploy(
  deps: DeployDeps,
  request: DeployRequest,
  deployApplication: DeployApplication,
): Promise<DeployedApi[]> {
  return deps.projects.beside(async () => {
    const project = await unpackProject(deps.dataDir, request);
    await deps.projects.know(project.project_id);
    const application = await deployApplication(project, request);
    if (application !== undefined) return [applicationOf(application, project.project_id)];
    const { configText } = project;
    const errors = condaErrors(project.directory);
    const keep = () => deps.projects.keep(project);
    return deployConfig(deps, request, { configText, errors, filesOf: async () => project, keep });
  });
}

/** Deploys a new configuration for deployed APIs. Each keeps the files that it was deployed with. */
export function patch(deps: DeployDeps, request: ConfigRequest, configText: string): Promise<DeployedApi[]> {
  const filesOf: Source["filesOf"] = async ({ config: { name } }, deployed) => {
    if (deployed === undefined)
      throw new ServiceError("api_not_found", `${name} is not deployed; \`quern deploy\` deploys it`);
    const { project_id } = deployed;
    await deps.projects.fetch(project_id);
    return { project_id, directory: projectDirectory(deps.dataDir, project_id) };
  };
  return deps.projects.beside(() =>
    deployConfig(deps, request, { configText, errors: [], filesOf, keep: async () => {} }),
  );
}

async function deployConfig(
  deps: DeployDeps,
  { sender, by, configFile, only, dryRun }: ConfigRequest,
  { configText, errors: ofProject, filesOf, keep }: Source,
): Promise<DeployedApi[]> {
  const read = await readLongConfig(configText, configFile, sender);
  const errors = [...read.errors, ...ofProject];
  // Reports the errors of the whole file, as far as each entry can be read.
  const apis = errors.length > 0 ? read.apis : selectApis(read.apis, only);
  const current = new Map((await allCurrent(deps.db)).map((version) => [version.name, version]));
  const candidates: Candidate[] = [];
  for (const api of apis) {
    const deployed = current.get(api.config.name);
    candidates.push({ api, deployed, files: await filesOf(api, deployed) });
  }
  errors.push(...(await errorsOf(deps, candidates, [...current.values()])));
  if (errors.length > 0) throw invalid(errors);
  const planned = candidates.map(planApi);
  if (!dryRun) {
    // Also of unchanged versions: somebody may have removed their files from the store.
    await keep();
    await save(deps.db, planned, by);
  }
  return planned.map(({ answer }) => answer);
}

async function errorsOf(
  deps: DeployDeps,
  candidates: readonly Candidate[],
  current: readonly AnyVersion[],
): Promise<FieldError[]> {
  const configs = [...current, ...candidates.map(({ api }) => api)].map(({ config }) => config);
  const after = [...new Map(configs.map((config) => [config.name, config])).values()];
  const predictors = new PredictorChecks(deps);
  const errors: FieldError[] = [];
  for (const { api, deployed, files } of candidates) {
    const { config } = api;
    errors.push(...deploymentErrors(api, { deployed, after, gpus: deps.gpus, engine: deps.engine }));
    if (config.kind !== "TrafficSplitter")
      errors.push(...(await predictors.errorsOf(api, config, files.directory)));
  }
  return errors;
}

function applicationOf(
  application: { name: string; message: string } | { errors: FieldError[] },
  projectId: string,
): DeployedApi {
  if ("errors" in application) throw invalid(application.errors);
  const { name, message } = application;
  return { api: name, kind: "Application", api_id: projectId, message, endpoint: `/${name}` };
}

async function save(db: Database, planned: readonly PlannedApi[], by: DoneBy): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { api, ids, isUnchanged } of planned) {
      if (isUnchanged) continue;
      const { config, configText, submitted } = api;
      const deployed_time = timestamp();
      const version = { name: config.name, ...ids, deployed_time, configText, submitted, config };
      await saveVersion(tx, version as AnyVersion, { by });
    }
  });
}
