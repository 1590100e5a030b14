/**
 * Computes what an application's graph needs: the data, then each model, then its APIs. Earlier results are not
 * computed again, so a new pipeline resumes where the previous one was cut off.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../base/log.ts";
import { parseBytes, parseCpuMillis } from "../contracts/config/quantities.ts";
import type { Ask, Compute, Reservation } from "../engine/compute-account.ts";
import type { Engine, WorkerExit } from "../engine/engine.ts";
import { OWN_REQUIREMENTS } from "../engine/environments/environment-id.ts";
import type { Interpreter } from "../engine/environments/interpreter.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { appendLogLine } from "../observe/log-files.ts";
import type { Artifacts } from "./artifacts.ts";
import { nodesOf, type ResourceGraph } from "./check/resource-graph.ts";
import { fetchData } from "./fetch-data.ts";
import { DATA_KINDS, dataPlan, type Places, trainPlan } from "./plans.ts";
import { StageProcess } from "./stage-process.ts";

/** The packages that stages need in addition to the user's. */
const OWN_PACKAGES = "duckdb>=1.3\nnumpy>=1.22\n";
/** A stage's workload, the name of its log directory: the data, or a model. */
export const DATA = "data";
export const modelWorkload = (model: string) => `model-${model}`;
/** A stage that was killed from outside is started again, up to this many attempts. */
const ATTEMPTS = 3;

export interface PipelineDeps {
  log: Log;
  engine: Engine;
  /** The machine's reservations. */
  account: {
    ask: (need: Compute, onReserved: (reservation: Reservation) => void, holder: string) => Ask;
    cancel: (ask: Ask) => boolean;
    occupyAgain: (need: Compute, gpus: readonly string[], holder: string) => Reservation;
    giveBack: (reservation: Reservation) => void;
    describe: (need: Compute) => string;
  };
  hasGpus: boolean;
  store: ObjectStore;
  /** Installs a project's requirements and resolves to its interpreter. */
  prepare: (project: string, logFile: string) => Promise<Interpreter>;
  artifacts: Artifacts;
  /** Directory of the user's files. */
  project: string;
  /** The path of a log file of a workload. */
  logFile: (workload: string, name: string) => string;
  /** The directory of a trained model's project, by the model's id. */
  servingProject: (modelId: string) => string;
  /** Serves an API whose model is ready. */
  serve: (api: ResourceGraph["apis"][number]) => Promise<void>;
}

export class Pipeline {
  readonly graph: ResourceGraph;
  isWorking = true;
  /** The model that waits for compute, and why. */
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
      occupyAgain: (reservation) =>
        account.occupyAgain({ ...reservation, gpus: reservation.gpus.length }, reservation.gpus, this.holder),
      giveBack: (reservation) => account.giveBack(reservation),
    });
  }

  /** Names the application to others that wait for compute. */
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

  /** Ends the running stage, whose resources then count as terminated. */
  async terminate(): Promise<void> {
    await this.end("terminated");
    await this.deps.artifacts.endRunning(this.ids(), "terminated", "the deployment was stopped");
  }

  /** Ends the running stage; the next controller runs it again. */
  leave(): Promise<void> {
    return this.end("left");
  }

  private async end(how: "terminated" | "left"): Promise<void> {
    this.ending = how;
    this.abort.abort();
    this.stage.kill();
    // An installation of packages is not waited for: no stage starts after it.
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

  /** Computes missing data; true if all data is ready. */
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

  /** Fetches the data. If a store does not respond, it waits and logs that. */
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

  /** Runs the stage of these resources if one is missing; true if all are ready at the end. */
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
      const reservation = await this.granted(ids[0]!, need);
      if (reservation === undefined) return false;
      const memoryLimitBytes = need.memoryBytes === 0 ? undefined : need.memoryBytes;
      const log = logFile(workload, workload === DATA ? "data.log" : "training.log");
      const exit = await this.stage.run({ plan, interpreter, logFile: log, memoryLimitBytes, reservation });
      if (this.ending === undefined) await this.noteEnd(ids, exit, attempt);
    }
    return false;
  }

  /** Waits for compute; undefined if the pipeline was ended during the wait. */
  private async granted(id: string, need: Compute): Promise<Reservation | undefined> {
    if (this.ending !== undefined) return undefined;
    const { account } = this.deps;
    // A stage that needs nothing never waits, even if others have reserved more than the machine has.
    if (need.cpuMillis + need.memoryBytes + need.gpus === 0)
      return account.occupyAgain(need, [], this.holder);
    this.waiting = { id, reason: account.describe(need) };
    const reservation = await new Promise<Reservation | undefined>((resolve) => {
      const ask = account.ask(need, resolve, this.holder);
      this.abort.signal.addEventListener("abort", () => account.cancel(ask) && resolve(undefined));
    });
    this.waiting = undefined;
    if (reservation !== undefined && this.ending !== undefined) account.giveBack(reservation);
    return this.ending === undefined ? reservation : undefined;
  }

  /** Records why a stage failed that could not record it: it was killed, or user code ended the process. */
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

  /** Handles an error outside a stage: the data cannot be fetched, or packages cannot be installed. */
  private async failWith(error: Error): Promise<void> {
    if (this.ending !== undefined) return;
    this.deps.log.error({ err: error, application: this.graph.app }, "the pipeline failed");
    await this.fail(await this.undone(nodesOf(this.graph).map(({ id }) => id)), error.message);
  }

  /** The first missing resource gets the reason; those that depend on it get no state. */
  private async fail(ids: readonly string[], reason: string): Promise<void> {
    await this.deps.artifacts.endRunning(ids, "failed", reason);
    if (await this.hasFailed(ids)) return;
    const [firstMissing] = (await this.undone(ids)).filter((id) => id !== this.graph.environment.id);
    if (firstMissing !== undefined) await this.deps.artifacts.markFailed(firstMissing, reason);
  }
}

/** Data is computed without waiting for compute. */
const NOTHING: Compute = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };

function needOf({ resource }: ResourceGraph["models"][number]): Compute {
  const { cpu, mem, gpu } = resource.compute;
  return {
    cpuMillis: cpu == null ? 0 : parseCpuMillis(cpu)!,
    memoryBytes: mem == null ? 0 : parseBytes(mem)!,
    gpus: gpu ?? 0,
  };
}
