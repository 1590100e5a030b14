/**
 * Which workers of a real-time API are started and which drain, purely. A version that cannot start takes nothing down that
 * serves; on a machine too full for a surge one replica is replaced at a time (decision 5).
 */

/** Numbers of worker processes. */
export interface Fleet {
  /** As many are to serve. */
  wanted: number;
  /** Of one replica: `processes_per_replica`. */
  perReplica: number;
  /** Of the newest version: those that serve, and those that are on their way. */
  fresh: { ready: number; coming: number };
  /** Of all versions before it. */
  old: { ready: number; coming: number };
  /** Draining: they take room, and serve no more. */
  leaving: number;
  /** How many more than wanted there may be, and how many fewer may serve, while versions change. */
  surge: number;
  unavailable: number;
  /** For how many more the machine has room. */
  room: number;
  /** How many of the wanted ones start whether there is room or not: CPUs are shared, GPUs are not. */
  atAnyRate: number;
  /** The newest version has failed to start, and none of it serves. */
  isFailing: boolean;
}

export interface Plan {
  start: number;
  retireFresh: number;
  retireOld: number;
}

export function planRollout(fleet: Fleet): Plan {
  const { wanted, fresh, old, perReplica } = fleet;
  const have = fresh.ready + fresh.coming;
  const allowed = clamp(wanted + fleet.surge - have - old.ready - old.coming, 0, Math.max(0, wanted - have));
  const start = Math.min(allowed, Math.max(must(fleet, have), fleet.room));
  let retireOld = spareOld(fleet);
  // Nothing moves by itself: where the machine is full, or no surge is allowed, one makes room for its successor.
  const isStuck = have < wanted && start === 0 && fresh.coming === 0 && fleet.leaving === 0;
  if (isStuck && retireOld === 0 && !fleet.isFailing) retireOld = Math.min(old.ready, perReplica);
  return { start, retireFresh: Math.max(0, have - wanted), retireOld };
}

/** What the machine has to bear: the least that is to serve, and the successor of the only replica, so that none is missing. */
function must({ atAnyRate, old, perReplica }: Fleet, have: number): number {
  const missing = Math.max(0, atAnyRate - have - old.ready);
  const isOnlyOne = atAnyRate > 0 && have === 0 && old.ready > 0 && old.ready <= perReplica;
  return isOnlyOne ? Math.max(missing, perReplica) : missing;
}

/** Those before the newest version that are not needed: none that serves, until a new one has shown that it can. */
function spareOld({ wanted, fresh, old, unavailable }: Fleet): number {
  if (fresh.ready >= wanted) return old.ready + old.coming;
  const least = fresh.ready > 0 ? wanted - unavailable : wanted;
  return old.coming + clamp(fresh.ready + old.ready - least, 0, old.ready);
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
