/**
 * What user code calls other APIs with: a secret in the path of QUERN_API_URL, one for all workers of a version, made for the first of them and
 * ended with the last (docs/decisions/0023-calls-from-user-code.md). Only hashes are kept: after a restart of the controller new workers of a
 * version get another one, and those that live on keep theirs.
 */
import type { CapabilityRoute } from "../contracts/routes.ts";
import { newKey, sha256Of } from "./permission.ts";

/** Whose workers they are. A version that only has another address runs in the same workers. */
export interface CapabilityOwner {
  name: string;
  predictor_id: string;
}

export interface Capability {
  text: string;
  sha256: string;
  /** Resolves when gateways take it; never rejects. */
  isKnown: Promise<void>;
}

/**
 * What is kept of it. The port is a part: if it becomes another program's, that one may be told the capability, which opens nothing at another
 * port then.
 */
export function capabilityHash(port: number, text: string): string {
  return sha256Of(`${port}/${text}`);
}

export interface CapabilitiesDeps {
  /** Of the listener for user code. */
  port: number;

  /** Tells gateways which there are. */
  publish: (capabilities: CapabilityRoute[]) => void;
  /** Resolves when each that is connected acts by it. */
  everywhere: () => Promise<void>;
}

export class Capabilities {
  private readonly deps: CapabilitiesDeps;
  private readonly ofWorkers: Map<string, CapabilityRoute>;
  /** Those that this process has made, by their owner. */
  private readonly made = new Map<string, Capability>();

  /** `workers`: those that live on, with what they were given. */
  constructor(deps: CapabilitiesDeps, workers: readonly { worker_id: string; route: CapabilityRoute }[]) {
    this.deps = deps;
    this.ofWorkers = new Map(workers.map(({ worker_id, route }) => [worker_id, route]));
  }

  /** For a worker that is about to start. */
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
    const isKnown = this.deps.everywhere().catch(() => {});
    const capability = { text, sha256, isKnown };
    this.made.set(owner, capability);
    return capability;
  }

  /** The worker is gone: with the last one its capability opens nothing any more. */
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
