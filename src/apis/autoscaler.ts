/**
 * How many replicas an API should have, purely: from the requests in flight over a window (docs/guides/configuration.md has
 * the rule in words). `quern describe` shows the reason that comes with each decision.
 */

export interface ScalingRules {
  min: number;
  max: number;
  /** Requests in flight that one replica is meant to have. */
  target: number;
  windowMs: number;
  downscaleAfterMs: number;
  upscaleAfterMs: number;
  /** Of the current number: a step goes down to this part at most, up to this multiple. */
  maxDownscale: number;
  maxUpscale: number;
  downscaleTolerance: number;
  upscaleTolerance: number;
}

export interface Sample {
  atMs: number;
  /** Waiting and running, at all gateways. */
  inFlight: number;
}

export interface Recommendation {
  atMs: number;
  replicas: number;
}

export interface ScalingHistory {
  /** When the API was deployed, or this controller started. */
  startedMs: number;
  samples: readonly Sample[];
  recommendations: readonly Recommendation[];
}

export interface ScalingDecision {
  replicas: number;
  /** What this moment alone would say; kept for the periods of stabilization. */
  recommended: number;
  reason: string;
}

/** `history.recommendations` are those before this one. */
export function decideReplicas(
  rules: ScalingRules,
  current: number,
  history: ScalingHistory,
  nowMs: number,
): ScalingDecision {
  const inFlight = averageInFlight(history.samples, nowMs - rules.windowMs);
  const raw = inFlight / rules.target;
  const recommended = recommend(rules, current, raw);
  const load = `${inFlight.toFixed(1)} requests in flight on average over ${rules.windowMs / 1000} s, ${rules.target} wanted a replica`;
  if (current === 0 && raw > 0) return { replicas: recommended, recommended, reason: `woken: ${load}` };
  const replicas = stabilize(rules, current, recommended, history, nowMs);
  const why =
    replicas === recommended
      ? load
      : `${load}: ${recommended} recommended, held at ${replicas} for the time of stabilization`;
  return { replicas, recommended, reason: why };
}

/** For this moment alone: within the tolerances nothing changes, and no step is longer than the factors allow. */
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

/** Not below the highest recommendation of the one period, not above the lowest of the other; not before they have passed. */
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
