/**
 * Recreates the runtime directory or its sockets if somebody removes them: the directory is in the temporary folder,
 * which systems clean. Open connections are not affected. ApiReplicas that new connections cannot reach are replaced, as
 * by `quern refresh`.
 */
import { existsSync } from "node:fs";
import type { Apis } from "../apis/apis.ts";
import type { ApiReplicas, ServingReplica } from "../apis/serving/api-replicas.ts";
import type { Log } from "../base/log.ts";
import { every } from "../base/loop/pulse.ts";
import type { Service } from "../base/service.ts";
import { RUNTIME_POLL_MS } from "../contracts/limits/processes.ts";
import type { ControlServer } from "../control/control-server.ts";

/** A worker listens before it imports the class: after a tenth of a second, or some on a busy machine. */
const LISTENS_WITHIN_MS = 10_000;

export interface RuntimeWatchDeps {
  log: Log;
  servers: readonly ControlServer[];
  replicas: ApiReplicas;
  apis: Apis;
}

export class RuntimeWatch implements Service {
  private readonly deps: RuntimeWatchDeps;
  private end = () => {};
  private running: Promise<void> | undefined;

  constructor(deps: RuntimeWatchDeps) {
    this.deps = deps;
  }

  async start(): Promise<void> {
    this.end = every(RUNTIME_POLL_MS, "the runtime directory", () => {
      this.running ??= this.look().finally(() => {
        this.running = undefined;
      });
    });
  }

  async stop(): Promise<void> {
    this.end();
    await this.running;
  }

  private async look(): Promise<void> {
    const { log, servers, apis } = this.deps;
    try {
      const mended = await Promise.all(servers.map((server) => server.mend()));
      if (mended.includes(true))
        log.warn(
          { event: "runtime_directory_made_again" },
          "the runtime directory was removed; it was created again",
        );
      for (const name of this.unreachable()) {
        log.warn(
          { event: "replica_socket_removed", api: name },
          "the socket of a replica was removed; replacing it",
        );
        await apis.refresh(name, false);
      }
    } catch (error) {
      log.error(
        { event: "runtime_directory_gone", err: error },
        "the runtime directory cannot be created again",
      );
    }
  }

  /** APIs with a replica that a new gateway or controller could not reach. */
  private unreachable(): string[] {
    const { replicas } = this.deps;
    return replicas.names.filter((name) => {
      const group = replicas.group(name);
      return group?.workers.some(
        (replica) =>
          replica.predictor_id === group.version.predictor_id &&
          replica.address === undefined &&
          mustListen(replica) &&
          !existsSync(replica.identity.socket),
      );
    });
  }
}

/** One that a former controller started listens long before this one can tell whether it is ready. */
function mustListen({ state, isUnknown, startedMs }: ServingReplica): boolean {
  return state === "ready" || (isUnknown && performance.now() - startedMs > LISTENS_WITHIN_MS);
}
