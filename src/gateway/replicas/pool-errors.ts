/** The errors with which Quern itself refuses or ends a request to a real-time API. Pure. */
import { ServiceError } from "../../contracts/errors.ts";
import type { ApiRoute } from "../../contracts/routes.ts";

const RETRY_AFTER_S = 1;

export function queueFull({ name, capacity }: ApiRoute, underWay: number): ServiceError {
  const message = `${underWay} requests of ${name} are in progress, the limit is ${capacity}; try again later, or raise autoscaling.max_replica_concurrency or the replica count`;
  return new ServiceError("queue_full", message, { retryAfterS: RETRY_AFTER_S });
}

export function noReplicaStarts({ name }: ApiRoute): ServiceError {
  const message = `no replica of ${name} could start; \`quern logs ${name}\` says why`;
  return new ServiceError("api_not_ready", message, { retryAfterS: RETRY_AFTER_S });
}

/** `where`: in which part of the work the time ran out. */
export function tooLong({ timeout_ms }: ApiRoute, where: string): ServiceError {
  const message = `the prediction did not end within predictor.timeout (${timeout_ms} ms), which ran out ${where}`;
  return new ServiceError("prediction_timeout", message);
}

export function neverStarted({ name, timeout_ms }: ApiRoute): ServiceError {
  const message = `no replica of ${name} was free for the request within predictor.timeout (${timeout_ms} ms), or none started; try again later, or raise autoscaling.min_replicas`;
  return new ServiceError("queue_timeout", message, { retryAfterS: RETRY_AFTER_S });
}

export function workerDied({ name }: ApiRoute): ServiceError {
  const message = `the worker died during the request; \`quern logs ${name}\` has its last output`;
  return new ServiceError("worker_died", message);
}

export function apiDeleted({ name }: ApiRoute): ServiceError {
  return new ServiceError("api_not_found", `${name} was deleted`);
}
