/**
 * Computes what an application's graph needs: the data, then each model, then its APIs. Earlier results are not
 * computed again, so a new pipeline resumes where the previous one was cut off.
 */
import type { Log } from "../base/log.ts";
import type { Engine } from "../engine/engine.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { appendLogLine } from "../observe/log-files.ts";
import { nodesOf, type ResourceGraph } from "./check/resource-graph.ts";
import { fetchData } from "./fetch-data.ts";
import type { KeptResults } from "./kept-results.ts";
import { dataPlan, trainPlan } from "./plans.ts";
import { StageAttempts, type StageAttemptsDeps } from "./stage-attempts.ts";
import { StageProcess } from "./stage-process.ts";
import { NOTHING, needOf, type StageAccount, StageReservations } from "./stage-reservations.ts";
import { DATA, DATA_KINDS, modelWorkload } from "./workloads.ts";

export interface PipelineDeps extends StageAttemptsDeps {
  log: Log;
  engine: Engine;
  account: StageAccount;
  hasGpus: boolean;
  store: ObjectStore;
  results: KeptResults;
  /** The directory of a trained model's project, by the model's id. */
  servingProject: (modelId: string) => string;
  /** Serves an API whose model is ready. */
  serve: (api: ResourceGraph["apis"][number]) => Promise<void>;
}

export class Pipeline {
  readonly graph: ResourceGraph;
  isWorking = true;
  private readonly deps: PipelineDeps;
  private readonly reservations: StageReservations;
  private readonly stage: StageProcess;
  private readonly attempts: StageAttempts;
  /** Aborted when the deployment is stopped, or its server. */
  private readonly ended = new AbortController();
  private done: Promise<void> | undefined;

  constructor(graph: ResourceGraph, deps: PipelineDeps) {
    const { signal } = this.ended;
    this.graph = graph;
    this.deps = deps;
    this.reservations = new StageReservations(deps.account, graph.app, signal);
    this.stage = new StageProcess({ ...deps, reservations: this.reservations });
    this.attempts = new StageAttempts(deps, this.stage, this.reservations, signal);
  }

  /** The model that waits for compute, and why. */
  get waiting(): { id: string; reason: string } | undefined {
    return this.reservations.waiting;
  }

  /** Resolves when everything is served or something has failed; never rejects. */
  run(): Promise<void> {
    this.done ??= this.work()
      .catch((error: Error) => this.failWith(error))
      .finally(() => {
        this.isWorking = false;
      });
    return this.done;
  }

  /** Ends the running stage, whose resources then count as terminated. */
  async terminate(): Promise<void> {
    await this.leave();
    const ids = [this.graph.environment.id, ...nodesOf(this.graph).map(({ id }) => id)];
    await this.deps.artifacts.endRunning(ids, "terminated", "the deployment was stopped");
  }

  /** Ends the running stage; the next controller runs it again. */
  async leave(): Promise<void> {
    this.ended.abort();
    this.stage.kill();
    // An installation of packages is not waited for: no stage starts after it.
    if (this.stage.isRunning) await this.done;
  }

  private get hasEnded(): boolean {
    return this.ended.signal.aborted;
  }

  private async work(): Promise<void> {
    await this.stage.adopt();
    const { results, artifacts } = this.deps;
    await results.fetch(this.graph);
    const keep = () => results.keep(this.graph, artifacts);
    await keep();
    await this.serveWhatIsReady();
    if (!(await this.runData())) return;
    await keep();
    const unique = new Map(this.graph.models.map((model) => [model.id, model]));
    for (const model of unique.values()) {
      if (this.hasEnded) return;
      await this.train(model);
      await keep();
      await this.serveWhatIsReady();
    }
  }

  /** Computes missing data; true if all data is ready. */
  private async runData(): Promise<boolean> {
    const { graph } = this;
    const { artifacts } = this.deps;
    const { id: environment } = graph.environment;
    const resources = nodesOf(graph).flatMap(({ kind, id }) => (DATA_KINDS.includes(kind) ? [id] : []));
    if ((await artifacts.missing(resources)).length === 0) return true;
    return this.attempts.run({
      workload: DATA,
      ids: [environment, ...resources],
      resources,
      need: NOTHING,
      planOf: async (places) => {
        const isIngested = (await artifacts.missing([environment])).length === 0;
        return dataPlan(graph, places, isIngested ? [] : await this.fetch());
      },
    });
  }

  /** Fetches the data. If a store does not respond, it waits and logs that. */
  private fetch(): Promise<string[]> {
    const { project, artifacts, logFile } = this.deps;
    const store = new PatientStore(this.deps.store, {
      onWait: (error, pauseMs) =>
        appendLogLine(
          logFile(DATA, "server.log"),
          `${error.message}; trying again in ${(pauseMs / 1000).toFixed(1)} s`,
        ),
      signal: this.ended.signal,
    });
    return fetchData(store, {
      path: this.graph.environment.resource.data.path,
      ...{ project, directory: artifacts.path("incoming"), signal: this.ended.signal },
    });
  }

  private async train(model: ResourceGraph["models"][number]): Promise<void> {
    const servingProject = this.deps.servingProject(model.id);
    await this.attempts.run({
      workload: modelWorkload(model.name),
      ids: [model.id],
      resources: [model.id],
      need: needOf(model),
      planOf: async (places) => trainPlan(this.graph, places, model, servingProject),
    });
  }

  private async serveWhatIsReady(): Promise<void> {
    for (const api of this.graph.apis) {
      const isThere = (await this.deps.artifacts.missing([api.model])).length === 0;
      if (isThere && !this.hasEnded) await this.deps.serve(api);
    }
  }

  /** Handles an error outside a stage: the data cannot be fetched, or packages cannot be installed. */
  private async failWith(error: Error): Promise<void> {
    if (this.hasEnded) return;
    const { log, artifacts } = this.deps;
    log.error({ event: "pipeline_failed", err: error, application: this.graph.app }, "the pipeline failed");
    await artifacts.fail(await artifacts.missing(nodesOf(this.graph).map(({ id }) => id)), error.message);
  }
}
