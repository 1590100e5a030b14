/**
 * Runs one stage of a pipeline as a process. It outlives a controller that dies, and the next controller waits for it.
 */

import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inBackground } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import type { Engine, RunningWorker, WorkerExit, WorkerIdentity } from "../engine/engine.ts";
import type { Interpreter } from "../engine/environments/interpreter.ts";
import type { Reservation } from "../engine/reservations.ts";
import type { Artifacts } from "./artifacts.ts";
import type { StageReservations } from "./stage-reservations.ts";

/** How often the alive file is touched. A stage ends itself if that has not happened for 30 s. */
const ALIVE_MS = 5_000;

export interface StageDeps {
  engine: Engine;
  reservations: Pick<StageReservations, "occupyAgain" | "giveBack">;
  /** Whether the machine has GPUs. If it has, a stage sees only those that it reserved. */
  hasGpus: boolean;
  artifacts: Artifacts;
  /** Directory of the user's files. */
  project: string;
}

export interface StageSpec {
  plan: object;
  /** The project's interpreter. */
  interpreter: Interpreter;
  logFile: string;
  memoryLimitBytes: number | undefined;
  /** Its reservation, given back when it has ended. */
  reservation: Reservation;
}

/** The file of a running stage. `grant` is its reservation, a name that files of former releases have. */
type StageRecord = WorkerIdentity & { grant: Reservation };

export class StageProcess {
  private readonly deps: StageDeps;
  private worker: RunningWorker | undefined;
  /** True from before the process starts until it has ended. */
  isRunning = false;
  private isKilled = false;

  constructor(deps: StageDeps) {
    this.deps = deps;
  }

  /** A file that is touched while a controller waits. */
  get alivePath(): string {
    return this.deps.artifacts.path("alive");
  }

  /** Waits for the stage that a former controller started, if it is still there. */
  async adopt(): Promise<WorkerExit | undefined> {
    const text = await readFile(this.recordPath, "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    const { grant: reservation, ...identity } = JSON.parse(text) as StageRecord;
    const limit = reservation.memoryBytes === 0 ? undefined : reservation.memoryBytes;
    const worker = this.deps.engine.adopt(identity, limit);
    if (worker === undefined) return undefined;
    const { reservations } = this.deps;
    const taken = reservations.occupyAgain(reservation);
    return this.wait(worker).finally(() => reservations.giveBack(taken));
  }

  /** Runs a stage to its end. */
  async run(spec: StageSpec): Promise<WorkerExit> {
    try {
      return await this.wait(await this.start(spec));
    } finally {
      this.isRunning = false;
      this.deps.reservations.giveBack(spec.reservation);
    }
  }

  private async start({
    plan,
    interpreter,
    logFile,
    memoryLimitBytes,
    reservation,
  }: StageSpec): Promise<RunningWorker> {
    const { artifacts, engine, project, hasGpus } = this.deps;
    this.isRunning = true;
    this.isKilled = false;
    await mkdir(artifacts.directory, { recursive: true, mode: 0o700 });
    const planFile = artifacts.path("plan.json");
    await writeFile(planFile, JSON.stringify(plan), { mode: 0o600 });
    await this.sayAlive();
    const worker = await engine.start({
      worker_id: `s-${randomBytes(4).toString("hex")}`,
      program: { package: "quern_application", args: [planFile] },
      ...{ project, interpreter, logFile, memoryLimitBytes },
      python_path: undefined,
      env: {},
      visibleGpus: hasGpus ? reservation.gpus : undefined,
      isBackground: true,
    });
    const record: StageRecord = { ...worker.identity, grant: reservation };
    await writeFile(`${this.recordPath}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${this.recordPath}.new`, this.recordPath);
    return worker;
  }

  /** Kills the stage, even if it is just being started. */
  kill(): void {
    this.isKilled = true;
    this.worker?.kill();
  }

  private get recordPath(): string {
    return join(this.deps.artifacts.directory, "stage.json");
  }

  private async wait(worker: RunningWorker): Promise<WorkerExit> {
    this.worker = worker;
    this.isRunning = true;
    if (this.isKilled) worker.kill();
    await this.sayAlive();
    const timer = setInterval(() => inBackground(this.sayAlive(), () => {}), ALIVE_MS);
    const exit = await worker.exited;
    clearInterval(timer);
    this.worker = undefined;
    this.isRunning = false;
    await rm(this.recordPath, { force: true });
    return exit;
  }

  private async sayAlive(): Promise<void> {
    const now = new Date(wallMs());
    await utimes(this.alivePath, now, now).catch(() => writeFile(this.alivePath, ""));
  }
}
