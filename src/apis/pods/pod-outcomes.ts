/** What follows when a pod's worker becomes ready, cannot be set up, or dies: for its API, for the logs, for the routes. */
import { contain, inBackground } from "../../base/boundary.ts";
import type { Log } from "../../base/log.ts";
import { KILL_GRACE_SECONDS } from "../../contracts/limits/kubernetes/pods.ts";
import { preparationError } from "../../engine/environments/step-failed.ts";
import { START_TIMEOUT } from "../../engine/lifetime.ts";
import { HEALTH_PORT } from "../../kubernetes/objects/worker-pods.ts";
import type { PodState } from "../../kubernetes/pod-state.ts";
import type { PodTrouble } from "../../kubernetes/pod-trouble.ts";
import { type LastExit, lastExitOf } from "../../kubernetes/pods/launcher.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";
import { describeLastExit } from "./describe-last-exit.ts";
import type { PodGroup } from "./pod-group.ts";
import type { GoneWorker, PodReplica, PodReplicaEvents } from "./pod-replica.ts";

const UNPREPARED = "Unprepared";

export interface PodOutcomesDeps {
  log: Log;
  /** Writes a line of the server to the API's log. */
  apiLog: (name: string, line: string) => void;
  /** Writes lines that a worker printed to the API's log. */
  workerLog: (name: string, worker: string, lines: readonly string[]) => void;
  /** Records that a replica that served ended unexpectedly, and how. */
  noteEnd: (name: string, how: string) => Promise<void>;
}

interface PodOutcomesOwner {
  /** The set of replicas, or why some are missing, has changed. */
  changed: () => void;
  group: (name: string) => PodGroup | undefined;
  remove: (replica: PodReplica, graceSeconds?: number) => void;
}

export class PodOutcomes {
  private readonly deps: PodOutcomesDeps;
  private readonly owner: PodOutcomesOwner;
  private readonly restartCounts = new Map<string, number>();
  /** The reason that the API's log has of each pod. */
  private readonly told = new Map<string, string>();

  constructor(deps: PodOutcomesDeps, owner: PodOutcomesOwner) {
    this.deps = deps;
    this.owner = owner;
  }

  restarts(name: string): number {
    return this.restartCounts.get(name) ?? 0;
  }

  eventsOf(name: string): PodReplicaEvents {
    return {
      onReady: () => this.judge(name),
      onFailed: (replica, fault) => this.notSetUp(name, replica, fault),
      onWear: ({ wear, pod }) => {
        if (wear === "worn")
          this.deps.apiLog(name, `replica ${pod.name} has reached max_requests or max_age, and is replaced`);
        this.owner.changed();
      },
      onLongStart: ({ pod }, seconds) =>
        this.deps.apiLog(name, `replica ${pod.name} has been starting for ${seconds} s`),
      onGone: (replica, worker) => contain(`a replica of ${name}`, () => this.gone(name, replica, worker)),
    };
  }

  /** The cluster says why a pod does not run: each reason once. The message of a pull changes from try to try. */
  tell(name: string, pod: string, { phase, trouble }: PodState): void {
    const reason = trouble === undefined || trouble.reason === "NotReady" ? "" : trouble.reason;
    if (phase === "ready") this.told.delete(pod);
    if (reason === "" || this.told.get(pod) === reason) return;
    this.told.set(pod, reason);
    this.deps.apiLog(name, `replica ${pod}: ${reason}: ${trouble!.detail}`);
  }

  /** Its launcher says why its pod cannot run a worker: once, although the words may differ from try to try. */
  unprepared(name: string, { pod, unprepared }: PodReplica): void {
    if (unprepared === undefined || this.told.get(pod.name) === UNPREPARED) return;
    this.told.set(pod.name, UNPREPARED);
    this.deps.apiLog(name, `replica ${pod.name} is not prepared: ${preparationError(unprepared).message}`);
    this.deps.workerLog(name, pod.name, unprepared.output);
  }

  /** A container ended and began again, for this reason. */
  restarted(name: string, replica: PodReplica, { reason, detail }: PodTrouble): void {
    const group = this.owner.group(name);
    if (group !== undefined) group.lastExit = detail;
    this.deps.apiLog(name, `replica ${replica.pod.name}: ${reason}: ${detail}`);
    if (reason === "OutOfMemory" && replica.state === "initializing")
      replica.trouble = { kind: "memory", message: `a replica's ${detail}` };
    this.judge(name);
  }

  /** The objects of an API are applied, or could not be. */
  applied(name: string, error: Error | undefined): void {
    const group = this.owner.group(name);
    if (group === undefined || group.notApplied === error?.message) return;
    group.notApplied = error?.message;
    if (error !== undefined) {
      this.deps.log.warn(
        { event: "cluster_failed", err: error, api: name },
        "an API could not be applied to the cluster",
      );
      this.deps.apiLog(name, `the cluster does not take its objects: ${error.message}`);
    }
    this.judge(name);
  }

  /** A prediction runs too long there. The Deployment makes another pod at once. */
  kill(replica: PodReplica | undefined): void {
    if (replica !== undefined) this.owner.remove(replica, KILL_GRACE_SECONDS);
  }

  /** Its other requests finish first. */
  replace(replica: PodReplica | undefined): void {
    if (replica !== undefined) this.owner.remove(replica);
  }

  private judge(name: string): void {
    this.owner.group(name)?.judge();
    this.owner.changed();
  }

  private notSetUp(name: string, replica: PodReplica, fault: WorkerFault): void {
    const message = describeFault(fault);
    this.deps.log.warn({ event: "replica_not_set_up", api: name, message }, "a replica could not be set up");
    this.deps.apiLog(name, `replica ${replica.pod.name} could not be set up: ${message}`);
    this.deps.workerLog(name, replica.pod.name, fault.traceback.split("\n").filter(Boolean));
    // A worker whose `__init__` hangs does not end by itself.
    if (fault.type === START_TIMEOUT) this.owner.remove(replica, KILL_GRACE_SECONDS);
    this.judge(name);
  }

  private async gone(name: string, replica: PodReplica, { pid, wasServing, servedMs }: GoneWorker) {
    if (wasServing) this.restartCounts.set(name, this.restarts(name) + 1);
    if (wasServing) this.owner.group(name)?.countDeath(servedMs);
    this.judge(name);
    const { host } = replica.address!;
    const exit = await lastExitOf(pid, { host, port: HEALTH_PORT, token: replica.pod.token });
    // Of a pod that is gone the cluster says more.
    if (exit === undefined || replica.state === "draining" || replica.state === "gone") return;
    this.ended(name, replica, { exit, wasServing });
  }

  private ended(
    name: string,
    replica: PodReplica,
    { exit, wasServing }: { exit: LastExit; wasServing: boolean },
  ): void {
    const how = describeLastExit(exit);
    const group = this.owner.group(name);
    if (group !== undefined) group.lastExit = how;
    // A fault of `__init__` is told already, and the exit after it is planned.
    const isTold = replica.trouble?.kind === "init" || replica.trouble?.kind === "timeout";
    if (isTold) return;
    this.deps.log.warn(
      { event: "replica_gone", api: name, worker: replica.pod.name, ...exit },
      "a replica is gone",
    );
    this.deps.apiLog(name, `replica ${replica.pod.name} ${how}`);
    this.deps.workerLog(name, replica.pod.name, exit.last_lines ?? []);
    if (replica.state === "initializing" && (exit.out_of_memory || !wasServing))
      replica.trouble = {
        kind: exit.out_of_memory ? "memory" : "death",
        message: `a replica ${how}${wasServing ? "" : " before it was ready"}`,
      };
    if (wasServing) inBackground(this.deps.noteEnd(name, how));
    this.judge(name);
  }
}
