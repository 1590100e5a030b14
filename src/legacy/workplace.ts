/** Dependencies of applications: their files, and the parts of the server that do the work. */
import { join, relative } from "node:path";
import { removeTree } from "../base/files/remove-tree.ts";
import type { Log } from "../base/log.ts";
import type { ResourceState, ServedApi } from "../contracts/config/applications.ts";
import { applicationDirectory, applicationLogDirectory, projectDirectory } from "../contracts/data-layout.ts";
import { ServiceError } from "../contracts/errors.ts";
import { RESULT_SHOWN_BYTES_MAX, VALUES_SHOWN_BYTES_MAX } from "../contracts/limits/responses.ts";
import type { Database } from "../database/database.ts";
import type { Engine } from "../engine/engine.ts";
import type { Interpreter } from "../engine/environments/interpreter.ts";
import type { Compute } from "../engine/scheduler/compute.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import type { Trees } from "../state/trees.ts";
import type { ApplicationRecord } from "./application-rows.ts";
import { Artifacts, type Result } from "./artifacts.ts";
import { readApplication } from "./check/read-application.ts";
import { type Node, nodesOf, type ResourceGraph } from "./check/resource-graph.ts";
import { KeptResults } from "./kept-results.ts";
import { Pipeline } from "./pipeline.ts";
import { sampleFields } from "./plans.ts";
import type { StageAccount } from "./stage-reservations.ts";
import { DATA, DATA_KINDS, modelWorkload } from "./workloads.ts";

/** The real-time API that serves an API of an application. */
export interface ServingSpec {
  /** Name of the real-time API. */
  name: string;
  endpoint: string;
  project_id: string;
  /** `predictor.config`. */
  config: { resource_id: string };
  path: string;
  compute: ResourceGraph["apis"][number]["resource"]["compute"];
}

export interface WorkplaceDeps {
  db: Database;
  log: Log;
  dataDir: string;
  engine: Engine;
  account: StageAccount & { total: Compute };
  store: ObjectStore;
  /** The files of projects, also those of trained models. */
  projects: Trees;
  /** What was computed, by `<application>/<id>`. */
  results: Trees;
  prepare: (project: string, logFile: string) => Promise<Interpreter>;
  /** The real-time APIs that serve. `assertFree` throws if another API than `name` has the address. */
  serving: {
    place: (spec: ServingSpec) => Promise<void>;
    /** The API's state; undefined if there is none. `resourceId`: the id of the resource that it serves. */
    find: (name: string) => Promise<(Omit<ServedApi, "is_current"> & { resourceId: string }) | undefined>;
    remove: (name: string) => Promise<void>;
    names: () => Promise<string[]>;
    assertFree: (name: string, endpoint: string) => Promise<void>;
    logDirectory: (name: string) => string;
  };
}

const PREDICTOR = ".quern/predictor.py";

export class Workplace {
  readonly db: Database;
  readonly log: Log;
  /** What the state of the server has. */
  readonly kept: KeptResults;
  private readonly deps: WorkplaceDeps;
  /** The last graph of each application: it is needed often, and building it hashes files. */
  private readonly graphs = new Map<string, { key: string; graph: ResourceGraph }>();

  constructor(deps: WorkplaceDeps) {
    this.deps = deps;
    this.kept = new KeptResults(deps, servingProjectId, deps.log);
    this.db = deps.db;
    this.log = deps.log;
  }

  async graphOf(record: ApplicationRecord): Promise<ResourceGraph> {
    const { deployed_time, ...content } = record;
    const key = JSON.stringify(content);
    const known = this.graphs.get(record.name);
    if (known?.key === key) return known.graph;
    const graph = await this.loadGraph(record);
    this.graphs.set(record.name, { key, graph });
    return graph;
  }

  private async loadGraph(record: ApplicationRecord): Promise<ResourceGraph> {
    const { config_text: text, config_file: file, environment, data_version: version } = record;
    await this.deps.projects.fetch(record.project_id);
    const task = { text, file, directory: this.project(record), graph: { environment, version } };
    const read = await readApplication(task, `application ${record.name}`);
    if (read.kind === "read") return read.graph!;
    throw new Error(`the files of the application ${record.name} are gone`);
  }

  artifacts(name: string): Artifacts {
    return new Artifacts(applicationDirectory(this.deps.dataDir, name));
  }

  pipelineOf(record: ApplicationRecord, graph: ResourceGraph): Pipeline {
    const { deps } = this;
    return new Pipeline(graph, {
      ...{ log: deps.log, engine: deps.engine, store: deps.store, prepare: deps.prepare },
      ...{ account: deps.account, hasGpus: deps.account.total.gpus > 0 },
      artifacts: this.artifacts(record.name),
      results: this.kept,
      project: this.project(record),
      logFile: (workload, name) => join(this.workloadLogs(record.name, workload), name),
      servingProject: (modelId) => projectDirectory(deps.dataDir, servingProjectId(modelId)),
      serve: (api) => deps.serving.place(servingSpec(graph.app, api)),
    });
  }

  /** Throws if a resource needs more GPUs than this machine has. */
  assertGpus({ models, apis }: ResourceGraph): void {
    const has = this.deps.account.total.gpus;
    for (const { kind, name, resource } of [...models, ...apis]) {
      const asked = resource.compute.gpu ?? 0;
      if (asked <= has) continue;
      const message = `${kind}: ${name}: compute.gpu: ${asked} requested, but this server offers ${has} (see nvidia-smi, or \`quern up --gpus\`)`;
      throw new ServiceError("invalid_request", message);
    }
  }

  /** Throws unless every address is free or belongs to this application. */
  async assertAddresses({ app, apis }: ResourceGraph): Promise<void> {
    for (const api of apis) {
      const { name, endpoint } = servingSpec(app, api);
      await this.deps.serving.assertFree(name, endpoint);
    }
  }

  /** Whether any of its resources must be computed. */
  async hasWork(graph: ResourceGraph): Promise<boolean> {
    const computed = nodesOf(graph).filter(({ kind }) => kind !== "api");
    return (await this.artifacts(graph.app).missing(computed.map(({ id }) => id))).length > 0;
  }

  /** Lets resources that failed before be computed again. */
  forgetFailures(graph: ResourceGraph): Promise<void> {
    const ids = [graph.environment.id, ...nodesOf(graph).map(({ id }) => id)];
    return this.artifacts(graph.app).forgetFailures(ids);
  }

  /** Removes the APIs that the application no longer has. */
  async retire({ app, apis }: Pick<ResourceGraph, "app" | "apis">): Promise<void> {
    const kept = new Set(apis.map((api) => servingName(app, api.name)));
    for (const name of await this.deps.serving.names())
      if (name.startsWith(`${app}.`) && !kept.has(name)) await this.deps.serving.remove(name);
  }

  /** Removes results that no resource of the graph has. After a refresh, those are all earlier ones. */
  async prune(graph: ResourceGraph): Promise<void> {
    const ids = new Set([graph.environment.id, ...nodesOf(graph).map(({ id }) => id)]);
    await this.artifacts(graph.app).prune(ids);
    await this.kept.prune(graph.app, ids);
  }

  /** Removes everything of the application. */
  async remove(app: string): Promise<void> {
    this.graphs.delete(app);
    await this.retire({ app, apis: [] });
    const ids = await this.artifacts(app).ids();
    for (const id of ids) await removeTree(projectDirectory(this.deps.dataDir, servingProjectId(id)));
    await this.kept.remove(app, ids);
    await removeTree(this.artifacts(app).directory);
    await removeTree(applicationLogDirectory(this.deps.dataDir, app));
  }

  /** The served APIs by the names of the application's APIs. */
  async served({ app, apis }: ResourceGraph): Promise<Map<string, ServedApi>> {
    const found = new Map<string, ServedApi>();
    for (const { name, id } of apis) {
      const served = await this.deps.serving.find(servingName(app, name));
      if (served === undefined) continue;
      const { resourceId, ...api } = served;
      found.set(name, { ...api, is_current: resourceId === id });
    }
    return found;
  }

  /**
   * Details of a resource that are reported in addition to its state. `values`: what may be shown of all values of
   * aggregates; undefined if they are not asked for.
   */
  async resultOf(
    graph: ResourceGraph,
    { kind, name, id }: Node<ResourceState["kind"]>,
    served: ReadonlyMap<string, ServedApi>,
    values: { bytesLeft: number } | undefined,
  ): Promise<Pick<ResourceState, "value" | "metrics" | "left_out" | "api" | "sample">> {
    const artifacts = this.artifacts(graph.app);
    if (kind === "aggregate")
      return values === undefined ? {} : this.shown("value", await artifacts.value(id, values));
    if (kind === "model") return this.shown("metrics", await artifacts.metrics(id));
    if (kind !== "api") return {};
    return { ...given("api", served.get(name)), sample: sampleFields(graph, name) };
  }

  private shown(name: "value" | "metrics", result: Result): Pick<ResourceState, typeof name | "left_out"> {
    if (result === undefined || "content" in result)
      return given(name, result?.content as ResourceState[typeof name]) as Pick<ResourceState, typeof name>;
    const { file, bytes } = result.leftOut;
    const most = `a response shows ${RESULT_SHOWN_BYTES_MAX} bytes of each, and ${VALUES_SHOWN_BYTES_MAX} of all values`;
    const place = `${relative(this.deps.dataDir, file)} in the server's data directory`;
    return { left_out: `its ${name} has ${bytes} bytes, but ${most}; the whole is ${place}` };
  }

  /** The log directory of the stage that computed it, or of an API's replicas. */
  logDirectory(app: string, { kind, name }: Node<ResourceState["kind"]>): string {
    if (kind === "api") return this.deps.serving.logDirectory(servingName(app, name));
    return this.workloadLogs(app, DATA_KINDS.includes(kind) ? DATA : modelWorkload(name));
  }

  private workloadLogs(app: string, workload: string): string {
    return join(applicationLogDirectory(this.deps.dataDir, app), workload);
  }

  private project({ project_id }: ApplicationRecord): string {
    return projectDirectory(this.deps.dataDir, project_id);
  }
}

/** Contains a point, which names of the user's own APIs never do. */
export function servingName(app: string, api: string): string {
  return `${app}.${api}`;
}

function servingSpec(app: string, api: ResourceGraph["apis"][number]): ServingSpec {
  return {
    name: servingName(app, api.name),
    endpoint: `/${app}/${api.name}`,
    project_id: servingProjectId(api.model),
    config: { resource_id: api.id },
    path: PREDICTOR,
    compute: api.resource.compute,
  };
}

function servingProjectId(modelId: string): string {
  return `model-${modelId.slice(0, 24)}`;
}

function given<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: Value };
}
