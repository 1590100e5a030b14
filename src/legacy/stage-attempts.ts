/**
 * Runs a stage until its resources are computed. A stage that was killed from outside is started again. If a stage
 * could not record why it failed, the reason is recorded here.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { WorkerExit } from "../engine/engine.ts";
import { OWN_REQUIREMENTS } from "../engine/environments/environment-id.ts";
import type { Interpreter } from "../engine/environments/interpreter.ts";
import type { Compute } from "../engine/scheduler/compute.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { Artifacts } from "./artifacts.ts";
import type { Places } from "./plans.ts";
import type { StageProcess } from "./stage-process.ts";
import type { StageReservations } from "./stage-reservations.ts";
import { DATA } from "./workloads.ts";

/** The packages that stages need in addition to the user's. */
const OWN_PACKAGES = "duckdb>=1.3\nnumpy>=1.22\n";
/** A stage that was killed from outside is started again, up to this many attempts. */
const ATTEMPTS = 3;

export interface StageAttemptsDeps {
  artifacts: Artifacts;
  /** Directory of the user's files. */
  project: string;
  /** Installs a project's requirements and resolves to its interpreter. */
  prepare: (project: string, logFile: string) => Promise<Interpreter>;
  /** The path of a log file of a workload. */
  logFile: (workload: string, name: string) => string;
}

/** What one stage computes. */
export interface StageOrder {
  workload: string;
  /** All that it computes; the first id is the one that waits for compute. */
  ids: readonly [string, ...string[]];
  /** Those of `ids` that users see. */
  resources: readonly string[];
  need: Compute;
  planOf: (places: Places) => Promise<object>;
}

export class StageAttempts {
  private readonly deps: StageAttemptsDeps;
  private readonly stage: StageProcess;
  private readonly reservations: StageReservations;
  private readonly ended: AbortSignal;

  /** `ended`: no stage starts any more. */
  constructor(
    deps: StageAttemptsDeps,
    stage: StageProcess,
    reservations: StageReservations,
    ended: AbortSignal,
  ) {
    this.deps = deps;
    this.stage = stage;
    this.reservations = reservations;
    this.ended = ended;
  }

  /** Runs the stage if one of its resources is missing; true if all are ready at the end. */
  async run(order: StageOrder): Promise<boolean> {
    const { artifacts } = this.deps;
    const { ids } = order;
    for (let attempt = 1; !this.ended.aborted; attempt++) {
      if ((await artifacts.missing(ids)).length === 0) return true;
      if (await artifacts.hasFailed(ids)) return false;
      const exit = await this.runOnce(order);
      if (exit === undefined) return false;
      if (!this.ended.aborted) await this.noteEnd(order, exit, attempt);
    }
    return false;
  }

  /** Undefined if the pipeline was ended while the stage waited for compute. */
  private async runOnce({ workload, ids, need, planOf }: StageOrder): Promise<WorkerExit | undefined> {
    const { artifacts, project, logFile } = this.deps;
    const interpreter = await this.prepare(workload);
    const plan = await planOf({ project, artifacts: artifacts.directory, alive: this.stage.alivePath });
    const reservation = await this.reservations.reserve(ids[0], need);
    if (reservation === undefined) return undefined;
    const memoryLimitBytes = need.memoryBytes === 0 ? undefined : need.memoryBytes;
    const log = logFile(workload, workload === DATA ? "data.log" : "training.log");
    return this.stage.run({ plan, interpreter, logFile: log, memoryLimitBytes, reservation });
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

  /** Records why a stage failed that could not record it: it was killed, or user code ended the process. */
  private async noteEnd({ ids, resources }: StageOrder, exit: WorkerExit, attempt: number): Promise<void> {
    const { artifacts } = this.deps;
    if ((await artifacts.missing(ids)).length === 0 || (await artifacts.hasFailed(ids))) return;
    const isHopeless = exit.outOfMemory !== undefined || exit.code !== undefined || attempt >= ATTEMPTS;
    if (!isHopeless) return;
    const last = exit.lastLines?.at(-1);
    const reason = `the process ${describeExit(exit)}${last === undefined ? "" : `; its last output: ${last}`}`;
    await artifacts.fail(ids, reason, resources);
  }
}
