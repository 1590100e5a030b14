/** What an explanation knows about an API. Plain data that the controller gathers; all durations are in seconds. */
import type { Tally } from "../../contracts/reports.ts";
import type { ComputeFacts, ServerFacts, WorkerFacts } from "../facts.ts";
import type { Finding, PastTrouble } from "../finding.ts";
import type { Amount } from "../words.ts";

/** Why the newest version has no replica. */
export type FailureKind = "requirements" | "timeout" | "memory" | "init" | "death" | "other";

export interface ReplicaFacts extends WorkerFacts {
  /** Of the newest version. */
  isNew: boolean;
}

export interface RolloutFacts {
  wanted: number;
  /** Replicas of the newest version that serve. */
  upToDate: number;
  /** Why so many are wanted. */
  because: string;
  min: number;
  max: number;
  /** Requests in flight per replica that the autoscaler aims at. */
  target: number;
  /** Requests that a replica runs at once. */
  parallel: number;
  failure: { kind: FailureKind; message: string } | undefined;
  /** The compute of one replica, if some wait for it. */
  lacks: Amount | undefined;
  isCrashing: boolean;
  /** Replicas that ended unexpectedly since the controller started, and how the last one ended. */
  restarts: number;
  lastExit: string | undefined;
  installingS: number | undefined;
  startupTimeoutS: number;
  replicas: readonly ReplicaFacts[];
}

/** The requests of a while, over all gateways. */
export interface TrafficFacts {
  /** How long that while is. */
  seconds: number;
  tally: Pick<Tally, "answers" | "duration" | "wait" | "rejected">;
  /** Now. */
  inFlight: number;
  waiting: number;
  /** The exceptions that the API's log has last, the most frequent first. */
  exceptions: readonly { text: string; count: number }[];
  timeoutS: number;
  /**
   * When a request failed in predict() last (Unix seconds), and how many have not failed since; undefined if none is
   * known to have failed. Refusals with a 5xx status count as neither.
   */
  lastFailures: { atS: number; agoS: number; requestsSince: number } | undefined;
  /** In that while another version began to serve alone; undefined if none did. */
  switched: Switched | undefined;
  /** Most requests failed when it was judged last. */
  wereMost: boolean;
}

export interface Switched {
  how: "deployed" | "rolled_back";
  /** Its id, and that of the version before; undefined if it is not known. */
  ids: { version: string; former: string } | undefined;
  /** When somebody asked for it (Unix seconds). */
  atS: number;
  /** Since that version alone serves. */
  requests: number;
  failed: number;
}

export interface ApiFacts {
  name: string;
  kind: "RealtimeAPI" | "BatchAPI" | "TrafficSplitter";
  status: string;
  /** Why it is in error, if its row cannot be read. */
  unreadable: string | undefined;
  server: ServerFacts;
  compute: ComputeFacts;
  /** Of a RealtimeAPI, once its deployment has begun. */
  rollout: RolloutFacts | undefined;
  /** Of a RealtimeAPI or a TrafficSplitter. */
  traffic: TrafficFacts | undefined;
  /** Of a BatchAPI. */
  jobs:
    | {
        pausedTime: string | undefined;
        installingS: number | undefined;
        /** Those that have not ended. */
        running: number;
        /** What is wrong with the oldest of them, and with the newest that has ended. */
        findings: readonly Finding[];
      }
    | undefined;
  /** Of a TrafficSplitter: the APIs behind it, and what is wrong with them. */
  targets: readonly { name: string; weight: number; findings: readonly Finding[] }[];
  /** Since when it is slow or fails, or the newest time of the last day in which it did. */
  troubles: readonly PastTrouble[];
}
