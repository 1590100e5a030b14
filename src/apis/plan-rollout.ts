/**
 * Which workers of a real-time API are started, which drain, and which wait for compute, purely. A version that cannot start takes
 * nothing down that serves. On a machine too full for a new replica beside the old ones, one is replaced at a time
 * (docs/contract/configuration.md#full-machine).
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
  /** For how many this API has compute that no worker uses. */
  spare: number;
  /** For how many more the machine has room. */
  room: number;
  /** A new replica may run beside the old ones on the CPUs that those give back. */
  canBorrow: boolean;
  /** How many old ones have to leave for one new replica to fit; 0 if it does not fit then either. */
  leavingForOne: number;
  /** What failed is not tried again yet. */
  isBackingOff: boolean;
  /** The newest version has failed to start, and none of it serves. */
  isFailing: boolean;
  /** ... and none of it ever did. */
  hasServed: boolean;
}

export interface Plan {
  start: number;
  /** Compute for one of those replicas is borrowed from the old ones. */
  borrows: boolean;
  retireFresh: number;
  retireOld: number;
  /** The place of those old ones is their successor's. */
  handsOver: boolean;
  /** Of the spare places, those that are still needed after the start. */
  keep: number;
  /** As many workers wait for compute. */
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
  // Nothing moves by itself: where the machine is full, or no surge is allowed, old ones make room for their successor.
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

/** How many more workers fit such that no replica is begun that cannot be completed: it would keep others from theirs. */
function inWholeReplicas({ room, perReplica }: Fleet, base: number): number {
  return Math.max(0, room - ((base + room) % perReplica));
}

/** The only replica is not taken down for want of CPU: for the time of the update its successor uses what it will leave. */
function mayBorrow({ canBorrow, old, perReplica }: Fleet, have: number): boolean {
  return canBorrow && have === 0 && old.ready > 0 && old.ready <= perReplica;
}

/** A replica that is started again keeps its place; a version that never served gives it to others until it is tried again. */
function mustStay({ isFailing, hasServed }: Fleet): boolean {
  return hasServed || !isFailing;
}

/** Those before the newest version that are not needed: none that serves, until a new one has shown that it can. */
function notNeeded({ wanted, fresh, old, unavailable }: Fleet): number {
  if (fresh.ready >= wanted) return old.ready + old.coming;
  const least = fresh.ready > 0 ? wanted - unavailable : wanted;
  return old.coming + clamp(fresh.ready + old.ready - least, 0, old.ready);
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
