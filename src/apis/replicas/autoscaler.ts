/**
 * Computes how many replicas an API should have from its requests in flight over a window (docs/guides/configuration.md
 * explains the rule). Each decision has a reason, which `quern describe` shows. Pure.
 */

export interface ScalingRules {
  min: number;
  max: number;
  /** The target of requests in flight per replica. */
  target: number;
  windowMs: number;
  downscaleAfterMs: number;
  upscaleAfterMs: number;
  /** Factors of the current replica count: the least and the most that one step may reach. */
  maxDownscale: number;
  maxUpscale: number;
  downscaleTolerance: number;
  upscaleTolerance: number;
}

export interface Sample {
  atMs: number;
  /** Requests that wait or run, at all gateways. */
  inFlight: number;
}

export interface Recommendation {
  atMs: number;
  replicas: number;
}

export interface ScalingHistory {
  /** When the API was deployed, or when this controller started. */
  startedMs: number;
  samples: readonly Sample[];
  recommendations: readonly Recommendation[];
}

export interface ScalingDecision {
  replicas: number;
  /** The recommendation of this moment alone, which is kept for the stabilization periods. */
  recommended: number;
  reason: string;
}

/** `history.recommendations` are the earlier ones. */
export function decideReplicas(
  rules: ScalingRules,
  current: number,
  history: ScalingHistory,
  nowMs: number,
): ScalingDecision {
  const inFlight = averageInFlight(history.samples, nowMs - rules.windowMs);
  const raw = inFlight / rules.target;
  const recommended = recommend(rules, current, raw);
  const load = `${inFlight.toFixed(1)} requests in flight on average over ${rules.windowMs / 1000} s, ${rules.target} per replica wanted`;
  if (current === 0 && raw > 0) return { replicas: recommended, recommended, reason: `woken: ${load}` };
  const replicas = stabilize(rules, current, recommended, history, nowMs);
  const why =
    replicas === recommended
      ? load
      : `${load}: ${recommended} recommended, kept at ${replicas} during the stabilization period`;
  return { replicas, recommended, reason: why };
}

/**
 * Recommends a replica count for this moment alone. Within the tolerances nothing changes, and the factors limit each
 * step.
 */
function recommend(rules: ScalingRules, current: number, raw: number): number {
  const { min, max } = rules;
  const wanted = Math.ceil(raw);
  const isTolerated =
    raw >= current * (1 - rules.downscaleTolerance) && raw <= current * (1 + rules.upscaleTolerance);
  if (isTolerated && current > 0) return clamp(current, min, max);
  const floor = Math.min(current - 1, Math.ceil(current * rules.maxDownscale));
  const ceiling = Math.max(current + 1, Math.ceil(current * rules.maxUpscale));
  return clamp(clamp(wanted, Math.max(0, floor), ceiling), min, max);
}

/**
 * Holds the count at or above the highest recommendation of the downscale period, and at or below the lowest of the
 * upscale period. The count does not change before the period has passed.
 */
function stabilize(
  rules: ScalingRules,
  current: number,
  recommended: number,
  { startedMs, recommendations }: ScalingHistory,
  nowMs: number,
): number {
  const since = (periodMs: number) =>
    recommendations.filter(({ atMs }) => atMs > nowMs - periodMs).map(({ replicas }) => replicas);
  let replicas = recommended;
  if (replicas < current) {
    const hasPassed = nowMs - startedMs >= rules.downscaleAfterMs;
    replicas = hasPassed ? Math.min(current, Math.max(replicas, ...since(rules.downscaleAfterMs))) : current;
  } else if (replicas > current) {
    const hasPassed = nowMs - startedMs >= rules.upscaleAfterMs;
    replicas = hasPassed ? Math.max(current, Math.min(replicas, ...since(rules.upscaleAfterMs))) : current;
  }
  return clamp(replicas, rules.min, rules.max);
}

function averageInFlight(samples: readonly Sample[], sinceMs: number): number {
  const counted = samples.filter(({ atMs }) => atMs > sinceMs);
  if (counted.length === 0) return 0;
  return counted.reduce((sum, { inFlight }) => sum + inFlight, 0) / counted.length;
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
