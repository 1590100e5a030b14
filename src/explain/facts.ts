/** What an explanation knows about the server, whatever it is about. Plain data that the controller gathers. */
import type { Amount } from "./words.ts";

export interface ServerFacts {
  /** Why the database does not serve now; undefined if it does. */
  databaseFault: string | undefined;
  /** Why the data directory cannot be written; undefined if it can. */
  diskFault: string | undefined;
  gateways: { wanted: number; connected: number };
}

/** The account of compute. */
export interface ComputeFacts {
  total: Amount;
  free: Amount;
  /** Who holds how much, the largest first; undefined if the caller may not know the names of others. */
  holders: readonly { holder: string; amount: Amount }[] | undefined;
  /** Workers are pods: a cluster has their compute, and this account says nothing about it. */
  isOfCluster?: boolean;
}

/** The memory of one worker and its children. */
export interface MemoryFacts {
  bytes: number;
  peakBytes: number;
  /** `compute.mem`; undefined is none. */
  limitBytes: number | undefined;
}

/** A worker that has started, or starts. */
export interface WorkerFacts {
  id: string;
  state: "initializing" | "ready" | "draining" | "gone";
  /** Since its process started, in seconds. */
  ageS: number;
  /** Undefined if it was not measured yet. */
  memory: MemoryFacts | undefined;
}
