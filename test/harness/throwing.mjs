/**
 * Real processes in which a unit of work throws: `node --import` of this file makes the method that the file named by
 * THROW_AT holds (`Class.method`) throw if the unit belongs to the victim: its name begins with `victim`. The product
 * does not know this file.
 */
import { readFileSync } from "node:fs";

const { THROW_AT: file, THROW_DIST: dist } = process.env;
const roles = ["gateway", "controller"];
const role = roles.find((name) => process.argv.includes(`__${name}`));

/** The class, its file, its methods, and the owner of the unit for an instance and its arguments. */
const UNITS = {
  gateway: [
    ["Router", "gateway/router.js", ["route", "forward"], (_, [{ request }]) => request.url.slice(1)],
    [
      "Arrival",
      "gateway/arrival.js",
      ["begin", "submit", "status"],
      (arrival) => arrival.destination.address.name,
    ],
    [
      "PredictionRequest",
      "gateway/answers/prediction-request.js",
      ["answer"],
      (prediction) => prediction.requestId,
    ],
    ["ApiPool", "gateway/replicas/api-pool.js", ["dispatch", "expire", "update"], (pool) => pool.route.name],
    ["ReplicaClient", "gateway/replicas/replica-client.js", ["onClose", "connect"], () => "victim"],
    ["RouteTable", "gateway/replicas/route-table.js", ["report"], () => "victim"],
  ],
  controller: [
    ["JobRun", "batch/job-run.js", ["start", "run", "tick", "dispatch", "end"], (run) => run.job.api_name],
    ["Enqueuing", "batch/enqueuing.js", ["enqueue"], (phase) => phase.run.job.api_name],
    ["Dispatching", "batch/dispatching.js", ["start"], (phase) => phase.run.job.api_name],
    ["Completion", "batch/completion.js", ["complete"], (completion) => completion.run.job.api_name],
    [
      "JobWorkers",
      "batch/workers/job-workers.js",
      ["startMissing", "keepAt", "startOne", "drop"],
      ({ options }) => options.by.api.split(" ")[1],
    ],
    [
      "BatchWorker",
      "batch/workers/batch-worker.js",
      ["setUp", "onGone", "onMessage", "lease"],
      () => "victim",
    ],
    [
      "Dispatcher",
      "batch/dispatch/dispatcher.js",
      ["addWorker", "acked", "died", "committed", "fill"],
      () => "victim",
    ],
    ["LeaseCursor", "batch/dispatch/lease-cursor.js", ["load"], () => "victim"],
    ["Settlements", "batch/dispatch/settlements.js", ["write", "drain"], () => "victim"],
    ["Rollouts", "apis/replicas/rollouts.js", ["reconcile"], (_, [group]) => group.version.name],
    ["ReplicaOutcomes", "apis/replicas/replica-outcomes.js", ["gone"], (_, [replica]) => replica.api_name],
    ["Replica", "apis/replicas/replica.js", ["connect", "gone", "ready"], (replica) => replica.api_name],
    ["ApiReader", "apis/api-reader.js", ["readableState"], (_, [version]) => version.name],
    ["Autoscaling", "apis/replicas/autoscaling.js", ["look"], (_, [name]) => name],
    ["Outbox", "batch/letters/outbox.js", ["send"], (_, [queue]) => queue.split(":").pop()],
    ["RoutePublisher", "apis/publish-routes.js", ["applied"], () => "victim"],
  ],
};

function armed() {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

for (const [name, path, methods, unitOf] of UNITS[role] ?? []) {
  const { [name]: Class } = await import(`${dist}/${path}`);
  for (const method of methods) {
    const original = Class.prototype[method];
    if (original === undefined) throw new Error(`${name} has no ${method}`);
    const isAsync = original.constructor.name === "AsyncFunction";
    Class.prototype[method] = function throwing(...given) {
      const isVictim = armed() === `${name}.${method}` && String(unitOf(this, given)).startsWith("victim");
      if (isVictim && isAsync) return Promise.reject(new Error(`thrown in ${name}.${method}`));
      if (isVictim) throw new Error(`thrown in ${name}.${method}`);
      return original.apply(this, given);
    };
  }
}
