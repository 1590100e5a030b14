/**
 * Decides how pods are replaced whose worker has reached `predictor.max_requests` or `max_age`: a successor starts
 * beside each, and a worn one goes once enough others serve. Pure.
 */

/** Counts of pods of the newest version. */
export interface WearingPods {
  /** How many should serve. */
  wanted: number;
  serving: number;
  /** Those that serve and will soon be worn. */
  wearing: number;
  /** Those that serve and are worn. */
  worn: number;
  /** Those that drain. */
  leaving: number;
}

export interface WearPlan {
  /** So many pods more than wanted. */
  extra: number;
  /** So many worn ones go. */
  retire: number;
}

/**
 * A stream may keep a draining pod for as long as its client likes, so worn ones stay while as many pods drain as should
 * serve: otherwise each stream could keep one more pod.
 */
export function planWear({ wanted, serving, wearing, worn, leaving }: WearingPods): WearPlan {
  const most = Math.max(0, wanted - leaving);
  const retire = Math.max(0, Math.min(serving - wanted, worn, most));
  return { extra: Math.min(most, worn + wearing) - retire, retire };
}
