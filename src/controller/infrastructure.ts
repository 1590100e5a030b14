/**
 * The dependencies of the controller's rooms: the locked data directory, its database, its instance, the engine, and
 * the compute account.
 */

import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import type { StartWorkerDeps } from "../apis/replicas/start-worker.ts";
import { type DiskWait, describeWait, whenDiskHasSpace } from "../base/disk-full.ts";
import { type Log, processLog } from "../base/log.ts";
import { processStartTime } from "../base/process-identity.ts";
import { CannotStart } from "../contracts/cannot-start.ts";
import { environmentsDirectory } from "../contracts/data-layout.ts";
import type { ActiveServer } from "../contracts/messages.ts";
import { type DataDirectory, directoryIdentity, lockDataDirectory } from "../database/data-directory.ts";
import type { Database } from "../database/database.ts";
import { takeEpoch } from "../database/owner-row.ts";
import { patientDatabase } from "../database/patient-database.ts";
import type { LeaseOwner } from "../database/postgres/lease.ts";
import { ComputeAccount } from "../engine/compute-account.ts";
import { PythonEnvironments } from "../engine/environments/python-environment.ts";
import { findGpus } from "../engine/gpus.ts";
import { LocalEngine } from "../engine/local/local-engine.ts";
import { watchLog } from "../observe/log-watch.ts";
import type { ChildOptions } from "../settings/child-options.ts";
import { pythonRuntimeDir } from "../settings/installation.ts";
import { projectTrees } from "./build-state.ts";
import { openChosenDatabase } from "./choose-database.ts";
import { settleInstance } from "./settle-instance.ts";
import { openState, type SettledState, takeState } from "./settle-state.ts";

export type ControllerOptions = ChildOptions & {
  serverEnv: NodeJS.ProcessEnv;
  /** Another server has the database: this one waits, or stops. */
  onStandby: (active: ActiveServer) => void;
};

/** The dependencies of all rooms. */
export interface Infrastructure {
  options: ControllerOptions;
  log: Log;
  db: Database;
  /** Why the database does not serve now; undefined if it does. */
  databaseFault: () => string | undefined;
  /** Resolves once this server has the database for certain; rejects if another one has it. */
  confirmOwner: () => Promise<void>;
  /** Higher than the epoch of every former controller. */
  epoch: number;
  workerDeps: StartWorkerDeps;
  account: ComputeAccount;
  /** Of the database. */
  instanceId: string;
  /** The database belongs to this data directory. So files that it does not know can be removed. */
  knowsFiles: boolean;
  /** What the server keeps in an object store (`--state`); undefined if all is in the data directory. */
  state: SettledState | undefined;
  /** Aborted when the controller stops: nobody waits for a store any more. */
  leaving: AbortController;
}

/** The longest time that a former controller takes to leave after its parent has died. */
const LOCK_WAIT_MS = 20_000;

function lockFor({ dataDir, parentPid }: ControllerOptions): Promise<DataDirectory> {
  const isAlive = (pid: number) => processStartTime(pid) !== undefined;
  return lockDataDirectory(dataDir, parentPid, LOCK_WAIT_MS, isAlive);
}

/** Opens all of these. It waits if the disk is too full for what a start must write. */
export async function openInfrastructure(
  options: ControllerOptions,
): Promise<Infrastructure & { close: () => Promise<void> }> {
  const { dataDir, serverEnv, python } = options;
  const log = processLog();
  const diskWait = {
    onWait: (error: unknown) => log.error({ event: "resources_short" }, describeWait(error, "waiting")),
    signal: new AbortController().signal,
  };
  // The lock of a new data directory is a file of some bytes.
  const directory = await whenDiskHasSpace(() => lockFor(options), diskWait);
  // nvidia-smi may take a second, so it runs beside the rest.
  const finding = findGpus(options.gpus, serverEnv.CUDA_VISIBLE_DEVICES);
  // Starting a Python also takes time.
  const root = environmentsDirectory(dataDir);
  const environments = new PythonEnvironments({ root, python, serverEnv, watchLog });
  const refusing = environments.pythons.refusal();
  // A standby must not find that out only when it takes over.
  if (options.state !== undefined) await assertPython(refusing, async () => directory.release());
  const chosen = await openChosenDatabase({
    ...{ dataDir, database: options.database, hasState: options.state !== undefined, log, diskWait },
    owner: ownerOf(options),
    onStandby: options.onStandby,
  });
  const { db } = chosen;
  const patientDb = patientDatabase(db, diskWait);
  const leaving = new AbortController();
  const confirmOwner = () => chosen.confirmOwner(leaving.signal);
  const { instance, state } = await settle(options, { db: patientDb, log, diskWait, confirmOwner }).catch(
    async (error: unknown) => {
      await chosen.close();
      directory.release();
      throw error;
    },
  );
  const engine = localEngine(options, instance.id);
  const gpus = await finding;
  const { apiPort } = options;
  const projects = projectTrees(state, { dataDir, log, leaving: leaving.signal });
  const workerDeps = {
    ...{ db: patientDb, engine, environments, dataDir, hasGpus: gpus.length > 0, apiPort, projects },
  };
  const account = new ComputeAccount({ ...accountOf(options), gpus });
  const close = async () => {
    await engine.settled();
    await chosen.close();
    directory.release();
  };
  await assertPython(refusing, close);
  return {
    options,
    log,
    db,
    databaseFault: chosen.fault,
    confirmOwner,
    epoch: await takeEpoch(patientDb),
    workerDeps,
    account,
    close,
    instanceId: instance.id,
    knowsFiles: instance.knowsFiles,
    state,
    leaving,
  };
}

async function assertPython(
  refusing: Promise<string | undefined>,
  close: () => Promise<void>,
): Promise<void> {
  const refusal = await refusing;
  if (refusal === undefined) return;
  await close();
  throw new CannotStart("option_unusable", refusal);
}

function localEngine(options: ControllerOptions, instanceId: string): LocalEngine {
  const { dataDir, runtimeDir, serverEnv, delegatedCgroup, state } = options;
  return new LocalEngine({
    ...{ instanceId, dataDir: realpathSync(dataDir), isShared: state !== undefined },
    ...{ runtimeDir, pythonRuntime: pythonRuntimeDir, serverEnv, watchLog, delegatedCgroup },
  });
}

/** This server, for those that wait for its database. Called when the data directory is locked. */
function ownerOf({ dataDir, publicUrl, mainUrl }: ControllerOptions): LeaseOwner {
  const path = realpathSync(dataDir);
  return {
    directory: directoryIdentity(path),
    host: hostname(),
    place: `${publicUrl ?? mainUrl}, data directory ${path}`,
  };
}

/** Whose data directory and state these are. */
async function settle(
  { dataDir, continueJobs, state: address, serverEnv: env }: ControllerOptions,
  {
    db,
    log,
    diskWait,
    confirmOwner,
  }: { db: Database; log: Log; diskWait: DiskWait; confirmOwner: () => Promise<void> },
) {
  const opened = await openState({ address, dataDir, db, env, log, confirmOwner });
  const isCache = opened !== undefined;
  const instance = await settleInstance({ dataDir, continueJobs, isCache, db, log, diskWait });
  const state = opened && (await takeState(opened, { dataDir, db, log, instanceId: instance.id }));
  return { instance, state };
}

/**
 * The compute that all workers together may reserve: the operator's setting, which may exceed the machine, or else what
 * the machine has.
 */
function accountOf({ cpus, memory, machine }: ControllerOptions) {
  return { cpuMillis: cpus ?? machine.cpuMillis, memoryBytes: memory ?? machine.memoryBytes };
}
