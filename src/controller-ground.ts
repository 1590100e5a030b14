/** What the controller's rooms stand on: the locked data directory, its database, its instance, the engine, the machine's account. */

import { realpathSync } from "node:fs";
import { join } from "node:path";
import { describeShortage, whenThereIsRoom } from "./base/disk-full.ts";
import { type Log, openLog } from "./base/log.ts";
import { processStartTime } from "./base/process-identity.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { hideInText } from "./contracts/secrets.ts";
import type { ControllerOptions, Ground } from "./controller-rooms.ts";
import { type DataDirectory, lockDataDirectory } from "./database/data-directory.ts";
import { takeEpoch } from "./database/migrations.ts";
import { assertFits, checkAfterUncleanStop, markInUse, openOwnDatabase } from "./database/open-database.ts";
import { patientDatabase } from "./database/patient-database.ts";
import type { OnLocked } from "./database/sqlite.ts";
import { ComputeAccount } from "./engine/compute-account.ts";
import { findGpus } from "./engine/gpus.ts";
import { LocalEngine } from "./engine/local-processes.ts";
import { PythonEnvironments } from "./engine/python-environment.ts";
import { watchLog } from "./observe/log-watch.ts";
import { settleInstance } from "./settle-instance.ts";

/** A former controller whose parent has died needs this long to leave at most. */
const LOCK_WAIT_MS = 20_000;

function lockFor({ dataDir, parentPid }: ControllerOptions): Promise<DataDirectory> {
  const isAlive = (pid: number) => processStartTime(pid) !== undefined;
  return lockDataDirectory(dataDir, parentPid, LOCK_WAIT_MS, isAlive);
}

/** Waits where the disk has no room for what a start must write. */
export async function layGround(
  options: ControllerOptions,
): Promise<Ground & { close: () => Promise<void> }> {
  const { dataDir, runtimeDir, pythonRuntime, serverEnv, python } = options;
  const directory = await lockFor(options);
  // nvidia-smi may take a second: beside the rest.
  const finding = findGpus(options.gpus, serverEnv.CUDA_VISIBLE_DEVICES);
  // A Python too takes its time to start.
  const root = join(dataDir, "environments");
  const environments = new PythonEnvironments({ root, python, serverEnv, watchLog });
  const refusing = environments.pythons.refusal();
  const log = openLog("controller", undefined, hideInText);
  const room = {
    onWait: (error: unknown) => log.error(`${describeShortage(error)}: waiting until there is room`),
    signal: new AbortController().signal,
  };
  assertFits(dataDir);
  const inUse = await whenThereIsRoom(async () => markInUse(dataDir), room);
  if (inUse.wasUnclean)
    await checkAfterUncleanStop(dataDir, (error) => log.error({ err: error }, "the database is damaged"));
  const db = await whenThereIsRoom(() => openOwnDatabase(dataDir, tellOfLock(log)), room);
  const patientDb = patientDatabase(db, room);
  const instance = await settleInstance({
    dataDir,
    continueJobs: options.continueJobs,
    db: patientDb,
    log,
    room,
  });
  const ownerOptions = { instanceId: instance.id, dataDir: realpathSync(dataDir) };
  const engine = new LocalEngine({
    ...ownerOptions,
    runtimeDir,
    pythonRuntime,
    serverEnv,
    watchLog,
    ownGroup: options.ownGroup,
  });
  const gpus = await finding;
  const { apiPort } = options;
  const workerDeps = { db: patientDb, engine, environments, dataDir, hasGpus: gpus.length > 0, apiPort };
  const account = new ComputeAccount({ ...options.compute, gpus });
  const close = async () => {
    await engine.settled();
    await db.close();
    inUse.clear();
    directory.release();
  };
  const refusal = await refusing;
  if (refusal !== undefined) {
    await close();
    throw new CannotStart("option_unusable", refusal);
  }
  return {
    options,
    log,
    db,
    epoch: await takeEpoch(patientDb),
    workerDeps,
    account,
    close,
    knowsFiles: instance.knowsFiles,
  };
}

function tellOfLock(log: Log): OnLocked {
  return ({ isOver, waitedMs }) => {
    const seconds = Math.round(waitedMs / 1000);
    if (isOver) log.warn(`another process had locked the database for ${seconds} s; going on`);
    else
      log.warn("another process has locked the database (a shell, a backup): jobs and changes wait for it");
  };
}
