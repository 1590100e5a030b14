/**
 * Capabilities: the secret in the path of QUERN_API_URL, with which user code calls other APIs
 * (docs/decisions/0023-calls-from-user-code.md). All workers of a version share one, from the first worker to the last.
 * Only hashes are kept. So after a restart of the controller, new workers of a version get another capability, and
 * running ones keep theirs.
 */
import type { CapabilityRoute } from "../contracts/routes.ts";
import { newKey, sha256Of } from "./permission.ts";

/** The version whose workers share a capability. A version that differs only in its address has the same workers. */
export interface CapabilityOwner {
  name: string;
  predictor_id: string;
}

export interface Capability {
  text: string;
  sha256: string;
  /** Resolves when gateways accept it; never rejects. */
  isKnown: Promise<void>;
}

/**
 * The hash that is stored. It includes the port: if another program takes the port, callers may send it the capability.
 * That capability is useless at Quern's next port.
 */
export function capabilityHash(port: number, text: string): string {
  return sha256Of(`${port}/${text}`);
}

export interface CapabilitiesDeps {
  /** The port of the listener for user code. */
  port: number;

  /** Publishes the current capabilities to the gateways. */
  publish: (capabilities: CapabilityRoute[]) => void;
  /** Resolves when every connected gateway has applied them. */
  waitUntilApplied: () => Promise<void>;
}

export class Capabilities {
  private readonly deps: CapabilitiesDeps;
  private readonly ofWorkers: Map<string, CapabilityRoute>;
  /** Capabilities that this process has made, by owner. */
  private readonly made = new Map<string, Capability>();

  /** `workers`: the running workers, each with the capability that it got. */
  constructor(deps: CapabilitiesDeps, workers: readonly { worker_id: string; route: CapabilityRoute }[]) {
    this.deps = deps;
    this.ofWorkers = new Map(workers.map(({ worker_id, route }) => [worker_id, route]));
  }

  /** The capability for a worker that is about to start. */
  give(workerId: string, { name, predictor_id }: CapabilityOwner): Capability {
    const owner = `${name} ${predictor_id}`;
    const known = this.made.get(owner);
    if (known !== undefined) {
      this.ofWorkers.set(workerId, { sha256: known.sha256, api: name });
      return known;
    }
    const text = newKey();
    const sha256 = capabilityHash(this.deps.port, text);
    this.ofWorkers.set(workerId, { sha256, api: name });
    this.deps.publish(this.routes);
    const isKnown = this.deps.waitUntilApplied().catch(() => {});
    const capability = { text, sha256, isKnown };
    this.made.set(owner, capability);
    return capability;
  }

  /** The worker is gone. When the last one is, its capability opens nothing any more. */
  end(workerId: string): void {
    const ended = this.ofWorkers.get(workerId);
    if (!this.ofWorkers.delete(workerId)) return;
    if ([...this.ofWorkers.values()].some(({ sha256 }) => sha256 === ended!.sha256)) return;
    for (const [owner, { sha256 }] of this.made) if (sha256 === ended!.sha256) this.made.delete(owner);
    this.deps.publish(this.routes);
  }

  private get routes(): CapabilityRoute[] {
    const byHash = new Map([...this.ofWorkers.values()].map((route) => [route.sha256, route]));
    return [...byHash.values()];
  }
}
