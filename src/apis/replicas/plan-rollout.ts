/**
 * Decides which workers of a real-time API start, which drain, and how many wait for compute. Pure. A version that
 * cannot start stops no replica that serves. If the machine is too full for a new replica beside the old ones, one is
 * replaced at a time (docs/contract/configuration.md#full-machine).
 */

/** All counts are worker processes. */
export interface Fleet {
  /** How many should serve. */
  wanted: number;
  /** Processes of one replica: `processes_per_replica`. */
  perReplica: number;
  /** Workers of the newest version: those that serve, and those that are starting. */
  fresh: { ready: number; coming: number };
  /** Workers of all earlier versions. */
  old: { ready: number; coming: number };
  /** Draining workers: they still occupy capacity, but no longer serve. */
  leaving: number;
  /** During a rollout: how many more than `wanted` may exist, and how many fewer may serve. */
  surge: number;
  unavailable: number;
  /** For how many workers this API holds compute that none of them uses. */
  spare: number;
  /** For how many more workers the machine has capacity. */
  capacityLeft: number;
  /** Whether a new replica may run beside the old ones, on the CPUs that these will give back. */
  canBorrow: boolean;
  /** How many old workers must leave before one new replica fits; 0 if it would not fit even without all of them. */
  leavingForOne: number;
  /** A failed start is not retried yet. */
  isBackingOff: boolean;
  /** The newest version has failed to start, and none of its workers serves. */
  isFailing: boolean;
  /** Whether any worker of the newest version was ever ready. */
  hasServed: boolean;
}

export interface Plan {
  start: number;
  /** One of the started replicas borrows its compute from the old ones. */
  borrows: boolean;
  retireFresh: number;
  retireOld: number;
  /** The retired old workers hand their compute over to their successor. */
  handsOver: boolean;
  /** How many of the spare reservations are still needed after the start. */
  keep: number;
  /** How many workers wait for compute. */
  waitFor: number;
}

export function planRollout(fleet: Fleet): Plan {
  const { wanted, fresh, old, spare, isBackingOff } = fleet;
  const have = fresh.ready + fresh.coming;
  const allowed = clamp(wanted + fleet.surge - have - old.ready - old.coming, 0, Math.max(0, wanted - have));
  const fitting = Math.min(allowed, spare + inWholeReplicas(fleet, have + spare));
  const borrows = !isBackingOff && fitting === 0 && allowed > 0 && mayBorrow(fleet, have);
  const start = isBackingOff ? 0 : borrows ? Math.min(allowed, fleet.perReplica) : fitting;
  const keep = isBackingOff && mustStay(fleet) ? Math.min(spare, allowed) : 0;
  const spareOld = notNeeded(fleet);
  // Nothing else will change: the machine is full, or no surge is allowed. So old workers make space for their
  // successor.
  const isStuck = have < wanted && start === 0 && fresh.coming === 0 && fleet.leaving === 0 && spareOld === 0;
  const mayReplace = isStuck && !isBackingOff && !fleet.isFailing;
  const replaced = mayReplace ? Math.min(old.ready, fleet.leavingForOne) : 0;
  const places = start + keep + replaced + fleet.leaving;
  return {
    start,
    borrows,
    retireFresh: Math.max(0, have - wanted),
    retireOld: spareOld + replaced,
    handsOver: replaced > 0,
    keep,
    waitFor: isBackingOff ? 0 : Math.max(0, allowed - places),
  };
}

/**
 * How many more workers fit. It counts whole replicas only: an incomplete one would take compute that others could use.
 */
function inWholeReplicas({ capacityLeft, perReplica }: Fleet, base: number): number {
  return Math.max(0, capacityLeft - ((base + capacityLeft) % perReplica));
}

/**
 * Whether the successor may share CPUs with the only old replica during the update, so that the old one can go on
 * serving.
 */
function mayBorrow({ canBorrow, old, perReplica }: Fleet, have: number): boolean {
  return canBorrow && have === 0 && old.ready > 0 && old.ready <= perReplica;
}

/** A replica that is restarted keeps its reservation. A version that never served gives it back until it is retried. */
function mustStay({ isFailing, hasServed }: Fleet): boolean {
  return hasServed || !isFailing;
}

/** Old workers that are not needed. Until a new worker serves, no old one that serves is given up. */
function notNeeded({ wanted, fresh, old, unavailable }: Fleet): number {
  if (fresh.ready >= wanted) return old.ready + old.coming;
  const least = fresh.ready > 0 ? wanted - unavailable : wanted;
  return old.coming + clamp(fresh.ready + old.ready - least, 0, old.ready);
}

/** A worker that starts or serves. */
export interface PresentWorker {
  predictor_id: string;
  state: string;
  wear: "fresh" | "wearing" | "worn";
}

/**
 * Splits workers into those that stay, and those that new ones replace: workers of earlier versions, and worn ones. A
 * stream may keep a draining worker for as long as its client likes, so worn ones also stay while as many workers drain
 * as should serve: otherwise each stream could keep one more process. `wearing`: how many successors may start early.
 */
export function splitByAge<Worker extends PresentWorker>(
  present: readonly Worker[],
  { predictorId, wanted, leaving }: { predictorId: string; wanted: number; leaving: number },
): { fresh: Worker[]; old: Worker[]; wearing: number } {
  const mayWearOut = Math.max(0, wanted - leaving);
  const current = present.filter(({ predictor_id }) => predictor_id === predictorId);
  const worn = new Set(current.filter(({ wear }) => wear === "worn").slice(0, mayWearOut));
  const fresh = current.filter((worker) => !worn.has(worker));
  const wearing = fresh.filter(({ state, wear }) => state === "ready" && wear === "wearing").length;
  return {
    fresh,
    old: present.filter((worker) => !fresh.includes(worker)),
    wearing: Math.min(wearing, mayWearOut - worn.size),
  };
}

/**
 * How many replicas were wanted, if a controller finds `fresh` of the newest version and `old` that they replace. In the
 * middle of a rollout up to `surge` more exist. Whoever drains is not counted.
 */
export function wantedBefore(fresh: number, old: number, surge: number): number {
  return Math.max(fresh, old, fresh + old - surge);
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
