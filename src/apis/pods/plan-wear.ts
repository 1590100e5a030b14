/**
 * Decides how pods are replaced whose worker has reached `predictor.max_requests` or `max_age`: a successor starts
 * beside one of them, and that one goes once enough others serve. Pure.
 */

/** Counts of pods of the newest version. */
export interface WearingPods {
  /** How many should serve. */
  wanted: number;
  /** Those that serve, and that the cluster counts as ready. */
  serving: number;
  /** Those that serve and will soon be worn. */
  wearing: number;
  /** Those that serve and are worn. */
  worn: number;
  /** Those that drain. */
  leaving: number;
}

/** So many pods more than wanted there may be. */
export const EXTRA_MAX = 1;

export interface WearPlan {
  /** So many pods more than wanted. */
  extra: number;
  /** So many worn ones go. */
  retire: number;
}

/**
 * One after the other: the cluster takes pods that are not ready before worn ones, so none may start while one goes.
 * There must be a place for one pod more, also if all pods are of the same age. A stream may keep a draining pod for as long as its client likes, so worn ones stay while as many pods drain as should
 * serve: otherwise each stream could keep one more pod.
 */
export function planWear({ wanted, serving, wearing, worn, leaving }: WearingPods): WearPlan {
  const most = Math.max(0, wanted - leaving);
  const retire = Math.max(0, Math.min(serving - wanted, worn, most));
  return { extra: Math.max(0, Math.min(EXTRA_MAX, most, worn + wearing) - retire), retire };
}
