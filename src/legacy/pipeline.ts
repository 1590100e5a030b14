/**
 * Brings an application to where its graph says: the data, then each model, then its APIs. What was computed before is not
 * computed again, so that whoever begins anew goes on where the one before was cut off.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../base/log.ts";
import { parseBytes, parseCpuMillis } from "../contracts/quantities.ts";
import type { Ask, Compute, Grant } from "../engine/compute-account.ts";
import type { Engine, WorkerExit } from "../engine/engine.ts";
import { OWN_REQUIREMENTS } from "../engine/environment-id.ts";
import type { Interpreter } from "../engine/interpreter.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { appendLogLine } from "../observe/log-files.ts";
import type { Artifacts } from "./artifacts.ts";
import { fetchData } from "./fetch-data.ts";
import { DATA_KINDS, dataPlan, type Places, trainPlan } from "./plans.ts";
import { nodesOf, type ResourceGraph } from "./resource-graph.ts";
import { StageProcess } from "./stage-process.ts";

/** What the pipeline needs beside the user's packages. */
const OWN_PACKAGES = "duckdb>=1.3\nnumpy>=1.22\n";
/** What a stage does, as the name of its logs' directory: the data, or a model. */
export const DATA = "data";
export const modelWorkload = (model: string) => `model-${model}`;
/** A stage that was killed from outside is begun again; who kills it more often means it. */
const ATTEMPTS = 3;

export interface PipelineDeps {
  log: Log;
  engine: Engine;
  /** What the machine has to give. */
  account: {
    ask: (need: Compute, onGranted: (grant: Grant) => void, holder: string) => Ask;
    cancel: (ask: Ask) => boolean;
    occupyAgain: (need: Compute, gpus: readonly string[], holder: string) => Grant;
    giveBack: (grant: Grant) => void;
    describe: (need: Compute) => string;
  };
  hasGpus: boolean;
  store: ObjectStore;
  /** The interpreter for a project, with what it requires installed. */
  prepare: (project: string, logFile: string) => Promise<Interpreter>;
  artifacts: Artifacts;
  /** The user's files. */
  project: string;
  /** A file of a workload's logs. */
  logFile: (workload: string, name: string) => string;
  /** Where the project of a trained model is, by the model's id. */
  servingProject: (modelId: string) => string;
  /** The model of this API is there: it is to be served. */
  serve: (api: ResourceGraph["apis"][number]) => Promise<void>;
}

export class Pipeline {
  readonly graph: ResourceGraph;
  isWorking = true;
  /** The model that waits for its part of the machine, and what there is. */
  waiting: { id: string; reason: string } | undefined;
  private readonly deps: PipelineDeps;
  private readonly stage: StageProcess;
  private ending: "terminated" | "left" | undefined;
  private done: Promise<void> | undefined;
  private readonly abort = new AbortController();

  constructor(graph: ResourceGraph, deps: PipelineDeps) {
    this.graph = graph;
    this.deps = deps;
    const { account } = deps;
    this.stage = new StageProcess({
      ...deps,
      occupyAgain: (grant) =>
        account.occupyAgain({ ...grant, gpus: grant.gpus.length }, grant.gpus, this.holder),
      giveBack: (grant) => account.giveBack(grant),
    });
  }

  /** Who has what its stages take of the machine, for others who wait. */
  private get holder(): string {
    return `application ${this.graph.app}`;
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

  /** Ends what runs; it counts as terminated. */
  async terminate(): Promise<void> {
    await this.end("terminated");
    await this.deps.artifacts.endRunning(this.ids(), "terminated", "the deployment was stopped");
  }

  /** Ends what runs; the next controller goes on with it. */
  leave(): Promise<void> {
    return this.end("left");
  }

  private async end(how: "terminated" | "left"): Promise<void> {
    this.ending = how;
    this.abort.abort();
    this.stage.kill();
    // Packages that are being installed are not waited for: nothing is begun after them.
    if (this.stage.isRunning) await this.done;
  }

  private ids(): string[] {
    return [this.graph.environment.id, ...nodesOf(this.graph).map(({ id }) => id)];
  }

  private async work(): Promise<void> {
    await this.stage.adopt();
    await this.serveWhatIsReady();
    if (!(await this.runData())) return;
    const unique = new Map(this.graph.models.map((model) => [model.id, model]));
    for (const model of unique.values()) {
      if (this.ending !== undefined) return;
      await this.train(model);
      await this.serveWhatIsReady();
    }
  }

  /** Whether all data is there. */
  private async runData(): Promise<boolean> {
    const { environment } = this.graph;
    const data = nodesOf(this.graph).filter(({ kind }) => DATA_KINDS.includes(kind));
    const ids = [environment.id, ...data.map(({ id }) => id)];
    if ((await this.undone(data.map(({ id }) => id))).length === 0) return true;
    return this.attempt(DATA, ids, NOTHING, async (places) => {
      const [isIngested] = await this.undone([environment.id]);
      const files = isIngested === undefined ? [] : await this.fetch();
      return dataPlan(this.graph, places, files);
    });
  }

  /** Waits for a store that is away, and says so in the log. */
  private fetch(): Promise<string[]> {
    const { project, artifacts, logFile } = this.deps;
    const store = new PatientStore(this.deps.store, {
      onWait: (error, pauseMs) =>
        appendLogLine(
          logFile(DATA, "server.log"),
          `${error.message}; trying again in ${(pauseMs / 1000).toFixed(1)} s`,
        ),
      signal: this.abort.signal,
    });
    return fetchData(store, this.graph.environment.resource.data.path, project, artifacts.path("incoming"));
  }

  private async train(model: ResourceGraph["models"][number]): Promise<void> {
    const { servingProject } = this.deps;
    const project = servingProject(model.id);
    await this.attempt(modelWorkload(model.name), [model.id], needOf(model), (places) =>
      Promise.resolve(trainPlan(this.graph, places, model, project)),
    );
  }

  /** Runs the stage of these resources where one is missing. Whether all are there at the end. */
  private async attempt(
    workload: string,
    ids: readonly string[],
    need: Compute,
    planOf: (places: Places) => Promise<object>,
  ): Promise<boolean> {
    const { artifacts, project, logFile } = this.deps;
    for (let attempt = 1; this.ending === undefined; attempt++) {
      if ((await this.undone(ids)).length === 0) return true;
      if (await this.hasFailed(ids)) return false;
      const interpreter = await this.prepare(workload);
      const places = { project, artifacts: artifacts.directory, alive: this.stage.alivePath };
      const plan = await planOf(places);
      const grant = await this.granted(ids[0]!, need);
      if (grant === undefined) return false;
      const memoryLimitBytes = need.memoryBytes === 0 ? undefined : need.memoryBytes;
      const log = logFile(workload, workload === DATA ? "data.log" : "training.log");
      const exit = await this.stage.run({ plan, interpreter, logFile: log, memoryLimitBytes, grant });
      if (this.ending === undefined) await this.noteEnd(ids, exit, attempt);
    }
    return false;
  }

  /** Waits for a part of the machine; undefined where the pipeline was ended meanwhile. */
  private async granted(id: string, need: Compute): Promise<Grant | undefined> {
    if (this.ending !== undefined) return undefined;
    const { account } = this.deps;
    // What asks for nothing runs beside whatever else does, also where that has more than there is.
    if (need.cpuMillis + need.memoryBytes + need.gpus === 0)
      return account.occupyAgain(need, [], this.holder);
    this.waiting = { id, reason: account.describe(need) };
    const grant = await new Promise<Grant | undefined>((resolve) => {
      const ask = account.ask(need, resolve, this.holder);
      this.abort.signal.addEventListener("abort", () => account.cancel(ask) && resolve(undefined));
    });
    this.waiting = undefined;
    if (grant !== undefined && this.ending !== undefined) account.giveBack(grant);
    return this.ending === undefined ? grant : undefined;
  }

  /** A stage that failed said why itself; one that was killed could not, nor one that the user's code ended. */
  private async noteEnd(ids: readonly string[], exit: WorkerExit, attempt: number): Promise<void> {
    if ((await this.undone(ids)).length === 0 || (await this.hasFailed(ids))) return;
    const isHopeless = exit.outOfMemory !== undefined || exit.code !== undefined || attempt >= ATTEMPTS;
    if (!isHopeless) return;
    const last = exit.lastLines?.at(-1);
    const reason = `the process ${describeExit(exit)}${last === undefined ? "" : `; its last words: ${last}`}`;
    await this.fail(ids, reason);
  }

  private async prepare(workload: string): Promise<Interpreter> {
    const { project, prepare, logFile } = this.deps;
    const own = join(project, OWN_REQUIREMENTS);
    // A power failure may have emptied it.
    if ((await readFile(own, "utf8").catch(() => undefined)) !== OWN_PACKAGES) {
      await mkdir(dirname(own), { recursive: true });
      await writeFile(own, OWN_PACKAGES);
    }
    return prepare(project, logFile(workload, "install.log"));
  }

  private async undone(ids: readonly string[]): Promise<string[]> {
    const states = await this.deps.artifacts.states(ids);
    return ids.filter((id) => states.get(id)?.state !== "succeeded");
  }

  private async hasFailed(ids: readonly string[]): Promise<boolean> {
    const states = await this.deps.artifacts.states(ids);
    return [...states.values()].some(({ state }) => state === "failed" || state === "terminated");
  }

  private async serveWhatIsReady(): Promise<void> {
    for (const api of this.graph.apis) {
      const isThere = (await this.undone([api.model])).length === 0;
      if (isThere && this.ending === undefined) await this.deps.serve(api);
    }
  }

  /** A fault before a stage could begin: the data cannot be fetched, or packages cannot be installed. */
  private async failWith(error: Error): Promise<void> {
    if (this.ending !== undefined) return;
    this.deps.log.error({ err: error, application: this.graph.app }, "the pipeline failed");
    await this.fail(await this.undone(nodesOf(this.graph).map(({ id }) => id)), error.message);
  }

  /** The first of what is missing gets the reason; what follows from it has no state. */
  private async fail(ids: readonly string[], reason: string): Promise<void> {
    await this.deps.artifacts.endRunning(ids, "failed", reason);
    if (await this.hasFailed(ids)) return;
    const [firstMissing] = (await this.undone(ids)).filter((id) => id !== this.graph.environment.id);
    if (firstMissing !== undefined) await this.deps.artifacts.markFailed(firstMissing, reason);
  }
}

/** Data is computed beside whatever else runs. */
const NOTHING: Compute = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };

function needOf({ resource }: ResourceGraph["models"][number]): Compute {
  const { cpu, mem, gpu } = resource.compute;
  return {
    cpuMillis: cpu == null ? 0 : parseCpuMillis(cpu)!,
    memoryBytes: mem == null ? 0 : parseBytes(mem)!,
    gpus: gpu ?? 0,
  };
}
