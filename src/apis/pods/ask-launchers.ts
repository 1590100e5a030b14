/** Asks the launchers of pods whose worker does not listen yet why their pod is not prepared. */
import { inBackground } from "../../base/boundary.ts";
import { HEALTH_PORT } from "../../kubernetes/objects/worker-pods.ts";
import { launcherFacts } from "../../kubernetes/pods/launcher.ts";
import type { PodGroup } from "./pod-group.ts";
import type { PodReplica } from "./pod-replica.ts";

/** `told` is called for each replica whose launcher has answered, with the face of its group before. */
export function askLaunchers(
  groups: Iterable<PodGroup>,
  told: (group: PodGroup, replica: PodReplica, before: string) => void,
): void {
  for (const group of groups)
    for (const replica of group.workers) {
      const host = replica.address?.host;
      if (replica.state !== "initializing" || replica.isConnected || host === undefined) continue;
      const ask = launcherFacts({ host, port: HEALTH_PORT, token: replica.pod.token }).then((facts) => {
        if (facts === undefined || replica.isConnected || replica.state !== "initializing") return;
        const before = group.face;
        replica.unprepared = facts.failure ?? undefined;
        told(group, replica, before);
      });
      inBackground(ask);
    }
}
