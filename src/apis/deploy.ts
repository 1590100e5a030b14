/**
 * Deploys the content of an archive. Everything is checked before anything is changed
 * (docs/contract/configuration.md#configuration-errors).
 */
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { relative, resolve } from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { timestamp } from "../base/clock.ts";
import { FORMER_GUIDE } from "../contracts/config/former-keys.ts";
import { projectDirectory } from "../contracts/data-layout.ts";
import { type FieldError, ServiceError } from "../contracts/errors.ts";
import type { Database } from "../database/database.ts";
import type { Pythons } from "../engine/environments/pythons.ts";
import { condaErrors, notSource } from "./config/former-files.ts";
import { type DeployableConfig, invalid, type ParsedApi } from "./config/parse-config.ts";
import { choosePython } from "./config/predictor-python.ts";
import { readLongConfig } from "./config/read-config.ts";
import { conflictOf, endpointOf } from "./endpoints.ts";
import { type UnpackedProject, unpackProject } from "./projects/project-store.ts";
import type { ProjectSweep } from "./projects/project-sweep.ts";
import { type AnyVersion, allCurrent, identityOf, saveVersion } from "./records/api-rows.ts";

const run = promisify(execFile);

export interface DeployDeps {
  db: Database;
  dataDir: string;
  /** The interpreter and the directory of the package `quern_runtime`, with which the class is checked. */
  python: string;
  pythonRuntime: string;
  /** The Pythons that `predictor.python` may name. */
  pythons: Pythons;
  /** How many GPUs this machine has. */
  gpus: number;
  projects: ProjectSweep;
}

/** Deploys an application if the configuration is one's `app.yaml`; undefined if it is a list of APIs. */
export type DeployApplication = (
  project: UnpackedProject,
  request: DeployRequest,
) => Promise<{ name: string; message: string } | { errors: FieldError[] } | undefined>;

export interface DeployRequest {
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

export interface DeployedApi {
  api: string;
  kind: AnyVersion["config"]["kind"] | "Application";
  api_id: string;
  message: string;
  /** The API's address, as a path. */
  endpoint: string;
}

/** The part of a request that applies to a configuration without files too. */
export type ConfigRequest = Omit<DeployRequest, "archive" | "onReceived" | "environment">;

/** The files of a version. */
type ProjectFiles = Pick<UnpackedProject, "project_id" | "directory">;

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
    return deployConfig(deps, request, project.configText, () => project, condaErrors(project.directory));
  });
}

/** Deploys a new configuration for deployed APIs. Each keeps the files that it was deployed with. */
export function patch(deps: DeployDeps, request: ConfigRequest, configText: string): Promise<DeployedApi[]> {
  return deps.projects.beside(() =>
    deployConfig(deps, request, configText, ({ config: { name } }, current) => {
      if (current === undefined)
        throw new ServiceError("api_not_found", `${name} is not deployed; \`quern deploy\` deploys it`);
      const { project_id } = current;
      return { project_id, directory: projectDirectory(deps.dataDir, project_id) };
    }),
  );
}

/** Calls `filesOf` for each API, with its deployed version. */
async function deployConfig(
  deps: DeployDeps,
  request: ConfigRequest,
  configText: string,
  filesOf: (api: ParsedApi, current: AnyVersion | undefined) => ProjectFiles,
  ofFiles: readonly FieldError[] = [],
): Promise<DeployedApi[]> {
  const read = await readLongConfig(configText, request.configFile);
  const errors = [...read.errors, ...ofFiles];
  // Reports the errors of the whole file, as far as each entry can be read.
  const apis = errors.length > 0 ? read.apis : selectApis(read.apis, request.only);
  const current = new Map((await allCurrent(deps.db)).map((version) => [version.name, version]));
  // The APIs that will be deployed afterwards.
  const after = [
    ...new Map([...current.values(), ...apis].map(({ config }) => [config.name, config])).values(),
  ];
  const checked = new Map<string, Promise<ClassFault[]>>();
  const projects: string[] = [];
  for (const api of apis) {
    const { project_id, directory } = filesOf(api, current.get(api.config.name));
    projects.push(project_id);
    const deployed = current.get(api.config.name);
    if (deployed !== undefined && api.hasKind && deployed.config.kind !== api.config.kind) {
      errors.push({
        pointer: api.positionOf(["kind"]),
        detail: `${api.config.name}: kind: cannot change from ${deployed.config.kind} while deployed; delete the API first`,
      });
    }
    errors.push(...addressErrors(api, after), ...splitterErrors(api, after));
    if (api.config.kind === "TrafficSplitter") continue;
    const { config } = api;
    errors.push(
      ...gpuErrors(deps, api, config),
      ...(await predictorErrors(deps, api, config, directory, checked)),
    );
  }
  if (errors.length > 0) throw invalid(errors);
  const planned = apis.map((api, at) => plan(api, projects[at]!, current.get(api.config.name)?.api_id));
  if (!request.dryRun) await save(deps.db, planned);
  return planned.map(({ deployed }) => deployed);
}

function applicationOf(
  application: { name: string; message: string } | { errors: FieldError[] },
  projectId: string,
): DeployedApi {
  if ("errors" in application) throw invalid(application.errors);
  const { name, message } = application;
  return { api: name, kind: "Application", api_id: projectId, message, endpoint: `/${name}` };
}

function selectApis(apis: ParsedApi[], only: readonly string[]): ParsedApi[] {
  const names = apis.map((api) => api.config.name);
  const missing = only.filter((name) => !names.includes(name));
  if (missing.length > 0)
    throw new ServiceError(
      "invalid_request",
      `the configuration has no API ${missing.join(", ")}; it has ${names.join(", ")}`,
    );
  return only.length === 0 ? apis : apis.filter((api) => only.includes(api.config.name));
}

/** The change that a deployment makes to one API. */
interface PlannedApi {
  api: ParsedApi;
  project_id: string;
  isUnchanged: boolean;
  deployed: DeployedApi;
}

function plan(api: ParsedApi, projectId: string, currentId: string | undefined): PlannedApi {
  const { config, configText } = api;
  const project_id = projectOf(config, projectId);
  const { api_id } = identityOf(config, configText, project_id);
  const message = messageOf(config, currentId, api_id);
  const deployed = { api: config.name, kind: config.kind, api_id, message, endpoint: endpointOf(config) };
  return { api, project_id, isUnchanged: currentId === api_id, deployed };
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

/** A splitter has no files of the project, so file changes do not affect it. */
function projectOf({ kind }: ParsedApi["config"], projectId: string): string {
  return kind === "TrafficSplitter" ? "" : projectId;
}

async function save(db: Database, planned: readonly PlannedApi[]): Promise<void> {
  await db.transaction(async (tx) => {
    for (const { api, project_id, isUnchanged } of planned) {
      if (isUnchanged) continue;
      const { config, configText, submitted } = api;
      const ids = identityOf(config, configText, project_id);
      await saveVersion(tx, {
        ...{ name: config.name, ...ids, project_id, deployed_time: timestamp(), configText, submitted },
        config,
      } as AnyVersion);
    }
  });
}

type Configs = readonly ParsedApi["config"][];

function addressErrors({ config, positionOf }: ParsedApi, after: Configs): FieldError[] {
  const other = conflictOf(config, after);
  if (other === undefined) return [];
  const detail = `${config.name}: networking.endpoint: ${endpointOf(config)} is in the way of ${other.name} at ${endpointOf(other)}; give one of them another address`;
  return [{ pointer: positionOf(["networking", "endpoint"]), detail }];
}

/** The APIs of a splitter must be in the same file, or already deployed. */
function splitterErrors({ config, positionOf }: ParsedApi, after: Configs): FieldError[] {
  if (config.kind !== "TrafficSplitter") return [];
  return config.apis.flatMap(({ name }, at) => {
    const kind = after.find((other) => other.name === name)?.kind;
    if (kind === "RealtimeAPI") return [];
    const what = kind === undefined ? "is not deployed, and not in this file" : `is a ${kind}`;
    return [
      {
        pointer: positionOf(["apis", at]),
        detail: `${config.name}: apis.${at}.name: ${name} ${what}; a TrafficSplitter sends to RealtimeAPIs`,
      },
    ];
  });
}

function gpuErrors({ gpus }: DeployDeps, { positionOf }: ParsedApi, config: DeployableConfig): FieldError[] {
  const asked = config.compute.gpu;
  if (asked <= gpus) return [];
  const has = gpus === 0 ? "no GPU" : `${gpus} GPU${gpus === 1 ? "" : "s"}`;
  const detail = `${config.name}: compute.gpu: ${asked} asked for, and this machine has ${has} to give out (nvidia-smi, or \`quern up --gpus\`, says which); take the key out, or deploy to a machine that has them`;
  return [{ pointer: positionOf(["compute", "gpu"]), detail }];
}

/** Finds errors that only the project's files show: missing files, and a class that is not valid. */
async function predictorErrors(
  deps: DeployDeps,
  { positionOf }: ParsedApi,
  config: DeployableConfig,
  directory: string,
  checked: Map<string, Promise<ClassFault[]>>,
): Promise<FieldError[]> {
  const { path, python_path } = config.predictor;
  const error = (field: string, detail: string, more: Pick<FieldError, "guide"> = {}) => ({
    pointer: positionOf(["predictor", field]),
    detail: `${config.name}: predictor.${field}: ${detail}`,
    ...more,
  });
  const errors: FieldError[] = [];
  const chosen = await choosePython(deps.pythons, deps.python, config.predictor.python);
  if ("detail" in chosen) errors.push(error("python", chosen.detail));
  const python = "detail" in chosen ? deps.python : chosen.python;
  if (python_path !== undefined && !isDirectoryInside(directory, python_path))
    errors.push(error("python_path", `"${python_path}" is not a directory of the project`));
  const file = resolve(directory, path);
  if (relative(directory, file).startsWith(".."))
    return [error("path", `"${path}" is outside the project`), ...errors];
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) {
    const what = found === undefined ? "file does not exist in the project" : "is not a file";
    return [error("path", `${path}: ${what} (is it in .quernignore?)`), ...errors];
  }
  const kind = notSource(file, path);
  if (kind !== undefined) return [error("path", kind, { guide: FORMER_GUIDE }), ...errors];
  // Many APIs may use the same file, and each check starts a Python.
  const key = `${python}\0${file}`;
  const check = checked.get(key) ?? checkClass(python, deps.pythonRuntime, file);
  checked.set(key, check);
  const faults = await check;
  return [
    ...errors,
    ...faults.map(({ line, message, former }) => ({
      pointer: `${path}:${line}`,
      detail: `${config.name}: ${message}`,
      ...(former === true ? { guide: FORMER_GUIDE } : {}),
    })),
  ];
}

function isDirectoryInside(directory: string, path: string): boolean {
  const full = resolve(directory, path);
  return !relative(directory, full).startsWith("..") && existsSync(full) && statSync(full).isDirectory();
}

interface ClassFault {
  line: number;
  message: string;
  /** The error is about a name of Cortex. */
  former?: boolean;
}

async function checkClass(python: string, pythonRuntime: string, file: string): Promise<ClassFault[]> {
  try {
    const { stdout } = await run(python, ["-S", "-E", "-m", "quern_runtime.check_predictor", file], {
      cwd: pythonRuntime,
    });
    return JSON.parse(stdout) as ClassFault[];
  } catch (error) {
    throw new ServiceError(
      "internal_error",
      `the predictor could not be checked with ${python}: ${(error as Error).message}`,
      { cause: error },
    );
  }
}
