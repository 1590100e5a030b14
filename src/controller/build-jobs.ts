/** Builds what runs jobs: stores and queues, the jobs themselves, and their retention. */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Capabilities } from "../access/capabilities.ts";
import { assertDeployed, setApiPaused } from "../apis/api-reader.ts";
import { findVersion, hasPredictor } from "../apis/records/api-rows.ts";
import {
  computeOf,
  initOf,
  lifetimeOf,
  startWorker,
  takeOverWorker,
  timeoutMsOf,
} from "../apis/replicas/start-worker.ts";
import { makeDirectories } from "../base/disk-full.ts";
import { armKillPoint } from "../base/kill-points.ts";
import { Solitude } from "../batch/dispatch/solitude.ts";
import { boundLogs } from "../batch/end/bound-logs.ts";
import { Retention } from "../batch/end/retention.ts";
import { StoredItems } from "../batch/items/stored-items.ts";
import type { JobDeps } from "../batch/job-deps.ts";
import { Jobs } from "../batch/jobs.ts";
import { Outbox } from "../batch/letters/outbox.ts";
import { Sqs } from "../batch/letters/sqs.ts";
import type { PodJobs } from "../batch/pods/pod-jobs.ts";
import { type ItemsStore, itemsInFiles } from "../batch/records/items-file.ts";
import { WarmWorkers } from "../batch/warm/warm-workers.ts";
import { jobLogDirectory, outputsDirectory } from "../contracts/data-layout.ts";
import { parseQueueName } from "../contracts/queues.ts";
import { makeTemporaryDirectory } from "../database/data-directory.ts";
import { OpenFiles } from "../engine/open-files.ts";
import { openStores } from "../object-store/backends/stores.ts";
import { ConditionProbe } from "../object-store/condition-probe.ts";
import type { LocalRoot } from "../object-store/files/allowed-paths.ts";
import { appendLogLine } from "../observe/log-files.ts";
import { openFilesCount, openFilesMax } from "../observe/open-files.ts";
import { FencedStore } from "../state/fenced-store.ts";
import { forRequest } from "../state/state-store.ts";
import { forgetWorker } from "./build-replicas.ts";
import type { Infrastructure } from "./infrastructure.ts";

function jobLogOf(dataDir: string): JobDeps["jobLog"] {
  return (jobId, line) => appendLogLine(join(jobLogDirectory(dataDir, jobId), "server.log"), line);
}

export type StoresAndQueues = Pick<JobDeps, "store" | "isQueueMissing" | "hasConditions" | "onLetters">;

/** Builds the connections of jobs beyond this machine: stores, and queues with their outbox. */
export function buildStoresAndQueues(
  { workerDeps, log, options, state, confirmOwner }: Infrastructure,
  roots: readonly LocalRoot[],
): { outbox: Outbox; storesAndQueues: StoresAndQueues } {
  const { dataDir, serverEnv } = options;
  makeDirectories(outputsDirectory(dataDir));
  const stores = openStores(
    {
      ...{ roots, dataDir: realpathSync(dataDir), env: serverEnv },
      outputsDirectory: realpathSync(outputsDirectory(dataDir)),
      temporaryDirectory: makeTemporaryDirectory(dataDir),
    },
    state?.place,
  );
  const store = state === undefined ? stores : new FencedStore(stores, confirmOwner);
  const sqs = new Sqs();
  const outbox = new Outbox({
    // A message that was sent and not deleted is sent again. So the deletion waits for the database.
    db: workerDeps.db,
    log,
    send: (queue, letters) => sqs.send(queue, letters),
    jobLog: jobLogOf(dataDir),
  });
  const isQueueMissing = async (queue: string) => {
    const name = parseQueueName(queue);
    return name?.kind === "sqs" && (await sqs.isMissing(name));
  };
  const probe = new ConditionProbe(store);
  const hasConditions = (prefix: string) => probe.hasConditions(prefix);
  const onLetters: JobDeps["onLetters"] = (named) => outbox.wake(named);
  return { outbox, storesAndQueues: { store, isQueueMissing, hasConditions, onLetters } };
}

export function buildJobs(
  infrastructure: Infrastructure,
  capabilities: Capabilities,
  lostWorkers: ReadonlyMap<string, number>,
  storesAndQueues: StoresAndQueues,
  pods: PodJobs | undefined,
): Jobs {
  const { db, epoch, log, options, account, knowsFiles, state } = infrastructure;
  const workerDeps = { ...infrastructure.workerDeps, capabilities };
  const { dataDir } = options;
  const findApiVersion = async (name: string, apiId: string) => {
    // A job and its workers ask: they wait for the database.
    const version = await findVersion(workerDeps.db, name, apiId);
    if (version === undefined || !hasPredictor(version))
      throw new Error(`version ${apiId} of ${name} is gone`);
    return version;
  };
  const forget = (workerId: string) => forgetWorker(infrastructure, capabilities, workerId);
  const deps: JobDeps = {
    ...storesAndQueues,
    db,
    dataDir,
    isOnDisk: { outputs: state === undefined, database: options.database === undefined },
    items: itemsStore(infrastructure),
    knowsFiles,
    epoch,
    log,
    reach: armKillPoint(options.killAt),
    computeFor: (jobId) => pods?.of(jobId) ?? account,
    openFiles: new OpenFiles({ max: openFilesMax(), count: openFilesCount }),
    solitude: new Solitude(),
    assertDeployed,
    setApiPaused,
    findApi: async (name, apiId) => {
      const version = await findApiVersion(name, apiId);
      return {
        api_id: apiId,
        init: initOf(dataDir, version),
        timeoutMs: timeoutMsOf(version),
        lifetime: lifetimeOf(version),
        compute: computeOf(version),
        // A pod belongs to one job.
        reusesWorkers: pods === undefined && version.config.predictor.reuse_worker === true,
      };
    },
    startWorker: async ({ api_name, api_id, job_id }, reservation) =>
      pods?.startWorker(job_id, reservation) ??
      startWorker(workerDeps, await findApiVersion(api_name, api_id), job_id, reservation.gpus),
    takeOverWorker: (process, jobId) => takeOverWorker(workerDeps, process, jobId),
    warmWorkers: new WarmWorkers({ account, forgetWorker: forget }),
    forgetWorker: forget,
    jobLog: jobLogOf(dataDir),
  };
  return new Jobs(deps, lostWorkers);
}

/** Where the items of jobs are kept. */
function itemsStore({ db, epoch, log, state, options, leaving }: Infrastructure): ItemsStore {
  if (state === undefined) return itemsInFiles(options.dataDir);
  return new StoredItems({ db, epoch, store: forRequest(state.store, log, leaving.signal) });
}

export function buildRetention(
  infrastructure: Infrastructure,
  jobs: Jobs,
  removeSoon: () => void,
): Retention {
  const { db, log, options } = infrastructure;
  const items = itemsStore(infrastructure);
  const { dataDir, keepJobs: keepMs, keepFailedJobs: keepFailedMs, keepRecords: keepRecordsMs } = options;
  const logDirectory = (jobId: string) => jobLogDirectory(dataDir, jobId);
  const bounded = { db, logDirectory, jobLog: jobLogOf(dataDir), logBytesMax: options.keepLogs };
  return new Retention({
    ...{ db, log, dataDir, items, removeSoon, logDirectory, keepMs, keepFailedMs, keepRecordsMs },
    leftBy: (jobId) => jobs.leftBy(jobId),
    boundLogs: (isStopped) => boundLogs(bounded, isStopped),
  });
}
